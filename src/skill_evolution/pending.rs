//! Changes of skills that agents proposed: a file for each, until a person has decided.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentsvc_api::http::files::FilesError;
use agentsvc_api::http::timestamp::Moment;
use agentsvc_api::skill_evolution::change::Change;
use agentsvc_api::skill_evolution::evolution::Candidate;
use agentsvc_api::skill_source::sources::SourceError;
use agentsvc_components::Timestamp;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_systems::skill_evolution::limits::{
    SKILL_PENDING_BYTES_MAX, SKILL_PENDING_MAX, SKILL_PENDING_OF_AGENT_MAX, SKILL_PENDING_OF_FAMILY_BYTES_MAX,
    SKILL_PENDING_OF_FAMILY_MAX,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::kernel::disk;
use crate::kernel::home::create_private_dir;

/// A proposed change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Proposal {
    pub(super) id: Uuid,
    pub(super) agent: Uuid,
    pub(super) agent_name: String,
    /// Whose share it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) holder: Option<Holder>,
    pub(super) session: Option<Uuid>,
    pub(super) taint: Vec<String>,
    /// Unix milliseconds.
    pub(super) created_at: i64,
    pub(super) base_hash: Option<String>,
    pub(super) warnings: Vec<String>,
    pub(super) change: Change,
}

impl Proposal {
    /// As the API shows it.
    pub(super) fn shown(&self, with_texts: bool) -> Candidate {
        Candidate {
            id: self.id,
            skill_name: self.change.skill.clone(),
            action: self.change.verb(),
            changelog: self.change.changelog.clone(),
            agent_id: self.agent,
            agent_name: self.agent_name.clone(),
            session_id: self.session,
            taint: self.taint.clone(),
            created_at: Moment(Timestamp(self.created_at)),
            base_hash: self.base_hash.clone(),
            warnings: self.warnings.clone(),
            change: with_texts.then(|| serde_json::to_value(&self.change).unwrap_or_default()),
        }
    }

    /// Is it the same change, by the same agent, of the same files?
    fn is_same(&self, other: &Self) -> bool {
        (self.agent, &self.change, &self.base_hash) == (other.agent, &other.change, &other.base_hash)
    }
}

/// The proposals of a home. Copies share their lock.
#[derive(Clone)]
pub(super) struct Pending {
    dir: PathBuf,
    adding: Arc<Mutex<()>>,
}

impl Pending {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, adding: Arc::default() }
    }

    /// Keeps a proposal; gives the id of one that is the same and waits already. Durable when it returns.
    ///
    /// # Errors
    /// [`FilesError::Busy`] when as many wait as may, or the disk's.
    pub(super) fn add(&self, proposal: &Proposal) -> Result<Uuid, SourceError> {
        let _adding = self.adding.lock();
        let waiting = self.list()?;
        if let Some(same) = waiting.iter().find(|other| other.is_same(proposal)) {
            return Ok(same.id);
        }
        let full = |what: String| SourceError::Files(FilesError::Busy(format!("{what}; ask the owner to decide")));
        if waiting.len() >= SKILL_PENDING_MAX {
            return Err(full(format!("{SKILL_PENDING_MAX} changes of skills wait for a decision")));
        }
        if waiting.iter().filter(|other| other.agent == proposal.agent).count() >= SKILL_PENDING_OF_AGENT_MAX {
            return Err(full(format!("{SKILL_PENDING_OF_AGENT_MAX} of your changes of skills wait for a decision")));
        }
        let of_family: Vec<_> =
            waiting.iter().filter(|other| other.holder.is_some() && other.holder == proposal.holder).collect();
        if of_family.len() >= SKILL_PENDING_OF_FAMILY_MAX {
            let what = "changes of skills by your family of agents wait for a decision";
            return Err(full(format!("{SKILL_PENDING_OF_FAMILY_MAX} {what}")));
        }
        let text = |it: &Proposal| serde_json::to_vec(it).map_err(|error| failed(io::Error::other(error)));
        let bytes = text(proposal)?;
        let own = of_family.iter().try_fold(bytes.len(), |sum, other| text(other).map(|text| sum + text.len()))?;
        if own as u64 > SKILL_PENDING_OF_FAMILY_BYTES_MAX {
            let what = "bytes of changes of skills by your family of agents wait for a decision";
            return Err(full(format!("more than {SKILL_PENDING_OF_FAMILY_BYTES_MAX} {what}")));
        }
        let paths = self.paths()?;
        let there = paths.iter().filter_map(|path| path.metadata().ok()).map(|found| found.len()).sum::<u64>();
        if there + bytes.len() as u64 > SKILL_PENDING_BYTES_MAX {
            return Err(full(format!(
                "more than {SKILL_PENDING_BYTES_MAX} bytes of changes of skills wait for a decision"
            )));
        }
        create_private_dir(&self.dir).map_err(|error| failed(io::Error::other(error)))?;
        disk::replace(&self.path(proposal.id), &bytes).map_err(failed)?;
        Ok(proposal.id)
    }

    /// All proposals, oldest first. One that cannot be read is left out, with a warning.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn list(&self) -> Result<Vec<Proposal>, SourceError> {
        let mut proposals: Vec<Proposal> = self.paths()?.iter().filter_map(|path| read(path)).collect();
        proposals.sort_by_key(|proposal| (proposal.created_at, proposal.id));
        Ok(proposals)
    }

    /// One proposal.
    ///
    /// # Errors
    /// [`SourceError::NotFound`].
    pub(super) fn get(&self, id: Uuid) -> Result<Proposal, SourceError> {
        let none = || SourceError::NotFound(format!("id: no change {id} of a skill waits for a decision"));
        let path = self.path(id);
        path.is_file().then(|| read(&path)).flatten().ok_or_else(none)
    }

    /// Removes a proposal. Durable when it returns.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn remove(&self, id: Uuid) -> Result<(), SourceError> {
        disk::remove_file(&self.path(id)).and_then(|()| disk::sync_dir(&self.dir)).map_err(failed)
    }

    fn path(&self, id: Uuid) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }

    fn paths(&self) -> Result<Vec<PathBuf>, SourceError> {
        let paths = disk::entries(&self.dir).map_err(failed)?;
        Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect())
    }
}

fn read(path: &Path) -> Option<Proposal> {
    let read = disk::read(path).map_err(|error| error.to_string());
    let parsed = read.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
    parsed.inspect_err(|error| tracing::warn!(error, "a proposed change of a skill could not be read")).ok()
}

fn failed(error: io::Error) -> SourceError {
    crate::skill_source::folders::FolderError::from(error).into()
}

#[cfg(test)]
mod tests {
    use agentsvc_api::skill_evolution::change::Action;
    use agentsvc_components::AgentId;

    use super::*;

    fn some_id() -> Uuid {
        let mut random = [0; 16];
        getrandom::fill(&mut random).expect("random numbers");
        Uuid::from_bytes(random)
    }

    fn proposal(agent: u128, text: &str) -> Proposal {
        let action = Action::Update { prompt_context: text.to_owned() };
        Proposal {
            id: some_id(),
            agent: Uuid::from_u128(agent),
            agent_name: "a".to_owned(),
            holder: Some(Holder::Family(AgentId(Uuid::from_u128(agent)))),
            session: None,
            taint: vec!["web".to_owned()],
            created_at: 1,
            base_hash: Some("x".to_owned()),
            warnings: Vec::new(),
            change: Change { skill: "s".to_owned(), action, changelog: "why".to_owned(), content_hash: None },
        }
    }

    #[test]
    fn proposals_are_kept_once_and_within_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let pending = Pending::new(dir.path().join("pending"));
        assert_eq!(pending.list().unwrap(), []);
        let first = proposal(1, "one");
        assert_eq!(pending.add(&first).unwrap(), first.id);
        assert_eq!(pending.add(&Proposal { id: some_id(), ..first.clone() }).unwrap(), first.id);
        assert_eq!(pending.get(first.id).unwrap(), first);
        for number in 1..SKILL_PENDING_OF_AGENT_MAX {
            pending.add(&proposal(1, &number.to_string())).unwrap();
        }
        let full = |agent, text: &str| match pending.add(&proposal(agent, text)) {
            Err(SourceError::Files(FilesError::Busy(why))) => why,
            other => panic!("{other:?}"),
        };
        assert!(full(1, "more").starts_with("20 of your"));
        // Other agents of a family have a share with it.
        let of_first = |agent, text: &str| Proposal { holder: first.holder, ..proposal(agent, text) };
        for number in SKILL_PENDING_OF_AGENT_MAX..SKILL_PENDING_OF_FAMILY_MAX {
            pending.add(&of_first(2, &number.to_string())).unwrap();
        }
        let more = pending.add(&of_first(2, "more")).unwrap_err();
        assert!(matches!(more, SourceError::Files(FilesError::Busy(why)) if why.starts_with("25 changes")));
        for number in SKILL_PENDING_OF_FAMILY_MAX..SKILL_PENDING_MAX {
            pending.add(&proposal(number as u128, "x")).unwrap();
        }
        assert!(full(200, "more").starts_with("100 changes"));
        pending.remove(first.id).unwrap();
        assert!(matches!(pending.get(first.id), Err(SourceError::NotFound(_))));
        assert_eq!(pending.list().unwrap().len(), SKILL_PENDING_MAX - 1);
    }

    #[test]
    fn a_damaged_proposal_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let pending = Pending::new(dir.path().to_owned());
        let (first, second) = (proposal(1, "one"), proposal(2, &"x".repeat(1_000)));
        pending.add(&first).unwrap();
        pending.add(&second).unwrap();
        std::fs::write(dir.path().join(format!("{}.json", first.id)), "{").unwrap();
        assert_eq!(pending.list().unwrap(), std::slice::from_ref(&second));
        assert!(pending.get(first.id).is_err());
        let shown = serde_json::to_value(second.shown(true)).unwrap();
        assert_eq!((&shown["action"], &shown["change"]["action"]), (&"update".into(), &"update".into()));
        assert!(serde_json::to_value(second.shown(false)).unwrap().get("change").is_none());
    }
}
