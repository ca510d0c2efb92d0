//! Changes of skills as the API reaches them.

use agentsvc_api::skill_evolution::change::{Action, Change};
use agentsvc_api::skill_evolution::evolution::{Candidate, Changed, SkillEvolution};
use agentsvc_api::skill_source::sources::SourceError;
use uuid::Uuid;

use super::evolver::Evolver;
use super::pending::Proposal;

impl SkillEvolution for Evolver {
    fn apply(&self, change: &Change, author: &str) -> Result<Changed, SourceError> {
        self.make(change, author, None)
    }

    fn pending(&self, agent: Option<Uuid>) -> Result<Vec<Candidate>, SourceError> {
        let proposals = self.pending.list()?;
        let wanted = proposals.iter().filter(|proposal| agent.is_none_or(|agent| agent == proposal.agent));
        Ok(wanted.map(|proposal| proposal.shown(false)).collect())
    }

    fn candidate(&self, id: Uuid) -> Result<Candidate, SourceError> {
        Ok(self.pending.get(id)?.shown(true))
    }

    fn approve(&self, id: Uuid) -> Result<Changed, SourceError> {
        let _deciding = self.deciding.lock();
        let proposal = self.pending.get(id)?;
        let changed = match self.made_before(&proposal) {
            Some(changed) => changed,
            None => {
                let Proposal { change, base_hash, agent, .. } = &proposal;
                let change = Change { content_hash: base_hash.clone(), ..change.clone() };
                self.make(&change, &format!("agent:{agent}"), Some(id))?
            }
        };
        self.pending.remove(id)?;
        Ok(changed)
    }

    fn reject(&self, id: Uuid) -> Result<(), SourceError> {
        let _deciding = self.deciding.lock();
        self.pending.get(id)?;
        self.pending.remove(id)
    }
}

impl Evolver {
    /// What a proposal has come to that was made before a crash, which kept it from being removed.
    fn made_before(&self, proposal: &Proposal) -> Option<Changed> {
        let skill = &proposal.change.skill;
        match self.present(skill) {
            Ok(present) => present.history.has(proposal.id).then(|| present.as_changed()),
            Err(SourceError::NotFound(_)) if matches!(proposal.change.action, Action::Delete) => Some(Changed {
                skill: skill.clone(),
                version: String::new(),
                content_hash: String::new(),
                warnings: Vec::new(),
            }),
            Err(_) => None,
        }
    }
}
