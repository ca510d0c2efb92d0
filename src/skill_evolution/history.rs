//! `.evolution.json` of a skill: its versions and what was counted.

use std::path::Path;

use agentsvc_api::http::timestamp::Moment;
use agentsvc_systems::skill_evolution::limits::SKILL_VERSIONS_KEPT_MAX;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::content::small;

/// The file in the folder of the skill.
pub(super) const FILE: &str = ".evolution.json";
/// The folder of the kept versions there, a file for each content hash.
pub(super) const KEPT: &str = ".evolution";
/// Characters of a text that another program wrote into the file.
const WORD_CHARS_MAX: usize = 1_024;

/// One version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Version {
    pub(super) version: String,
    /// RFC 3339.
    pub(super) timestamp: String,
    pub(super) changelog: String,
    pub(super) content_hash: String,
    /// `api`, or `agent:<id>`; empty where it is not known.
    pub(super) author: String,
    /// The proposal that it was, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) proposal: Option<Uuid>,
}

/// The versions of a skill, oldest first, the present one last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct History {
    pub(super) versions: Vec<Version>,
    /// How often agents read the skill, as far as that is counted.
    pub(super) use_count: u64,
    /// Changes of the instructions, rollbacks among them.
    pub(super) evolution_count: u64,
    /// Changes of any kind.
    pub(super) mutation_count: u64,
}

impl History {
    /// The history in a folder; an empty one where there is none, or none that can be read.
    pub(super) fn read(folder: &Path) -> Self {
        let read = small(&folder.join(FILE)).and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let mut history = read.unwrap_or_default();
        history.bound();
        history
    }

    /// As it is written.
    pub(super) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    /// Adds the present version, unless it is the last: the skill was installed, or changed by hand.
    pub(super) fn note_present(&mut self, present: Version) {
        if self.versions.last().is_none_or(|last| last.content_hash != present.content_hash) {
            self.push(present);
        }
    }

    /// Adds a version.
    pub(super) fn push(&mut self, version: Version) {
        self.versions.push(version);
        self.bound();
    }

    /// The version that a rollback means, by its number or hash; without one the newest whose files differ from `present`.
    pub(super) fn target(&self, version: Option<&str>, present: &str) -> Option<&Version> {
        self.versions.iter().rev().find(|kept| match version {
            Some(wanted) => kept.version == wanted || kept.content_hash == wanted,
            None => kept.content_hash != present,
        })
    }

    /// Was this proposal made?
    pub(super) fn has(&self, proposal: Uuid) -> bool {
        self.versions.iter().any(|version| version.proposal == Some(proposal))
    }

    fn bound(&mut self) {
        let over = self.versions.len().saturating_sub(SKILL_VERSIONS_KEPT_MAX);
        self.versions.drain(..over);
        for version in &mut self.versions {
            let texts = [
                &mut version.version,
                &mut version.timestamp,
                &mut version.changelog,
                &mut version.content_hash,
                &mut version.author,
            ];
            for text in texts {
                if let Some((end, _)) = text.char_indices().nth(WORD_CHARS_MAX) {
                    text.truncate(end);
                }
            }
        }
    }
}

/// A moment as the history says it.
pub(super) fn timestamp(at: Moment) -> String {
    serde_json::to_value(at).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: usize) -> Version {
        Version { version: format!("0.1.{number}"), content_hash: format!("hash-{number}"), ..Version::default() }
    }

    #[test]
    fn ten_versions_are_kept_and_found() {
        let mut history = History::default();
        (0..15).for_each(|number| history.push(version(number)));
        assert_eq!((history.versions.len(), &*history.versions[0].version), (10, "0.1.5"));
        history.note_present(version(14));
        assert_eq!(history.versions.len(), 10);
        let target =
            |wanted: Option<&str>, present: &str| history.target(wanted, present).map(|found| found.version.clone());
        assert_eq!(target(None, "hash-14"), Some("0.1.13".to_owned()));
        assert_eq!(target(None, "changed by hand"), Some("0.1.14".to_owned()));
        assert_eq!(
            (target(Some("0.1.7"), ""), target(Some("hash-7"), "")),
            (Some("0.1.7".to_owned()), Some("0.1.7".to_owned()))
        );
        assert_eq!(target(Some("0.1.4"), ""), None);
    }

    #[test]
    fn files_of_others_are_read_with_bounds() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(History::read(dir.path()), History::default());
        let long = "x".repeat(5_000);
        let text = format!(
            "{{\"versions\": [{{\"version\": \"1\", \"changelog\": {long:?}, \"odd\": 1}}], \"use_count\": 3}}"
        );
        std::fs::write(dir.path().join(FILE), text).unwrap();
        let history = History::read(dir.path());
        assert_eq!((history.versions[0].changelog.len(), history.use_count), (WORD_CHARS_MAX, 3));
        std::fs::write(dir.path().join(FILE), "[").unwrap();
        assert_eq!(History::read(dir.path()), History::default());
    }
}
