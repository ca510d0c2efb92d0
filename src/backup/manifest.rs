//! `manifest.json`, the first entry of an archive: what the archive is, and what every other entry must be.

use std::collections::BTreeMap;
use std::path::PathBuf;

use agentsvc_api::backup::store::ComponentContent;
use agentsvc_components::Timestamp;
use serde::{Deserialize, Serialize};

use super::component::{Component, components_of};

/// Its name.
pub const MANIFEST: &str = "manifest.json";
/// What it says it is.
pub const KIND: &str = "agentsvc backup";
/// The format this release writes; grows when an older release could not restore an archive.
pub const FORMAT: u32 = 1;

/// What an archive is, and what is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`KIND`].
    pub kind: String,
    /// See [`FORMAT`].
    pub format: u32,
    /// The release that wrote it.
    pub release: String,
    /// When the view was taken, RFC 3339.
    pub created_at: String,
    /// Since when ids of its home have a slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub born: Option<Timestamp>,
    /// The newest step that is in it, where steps are counted.
    #[serde(default)]
    pub step: Option<u64>,
    /// The newest entry of the audit trail that is in it.
    #[serde(default)]
    pub audit: Option<TrailEnd>,
    /// Contents by component.
    #[serde(default)]
    pub components: BTreeMap<String, ComponentContent>,
    /// What is in the world, by kind: `agents`, `sessions`, `messages`...
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// `data_dir` of its configuration, if it names one.
    #[serde(default)]
    pub data_dir: Option<PathBuf>,
    /// Directories of the home that were looked at; of others an archive says nothing.
    #[serde(default)]
    pub covers: Vec<String>,
    /// What was left out, in words.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Every other entry, in order.
    pub entries: Vec<Entry>,
}

/// Where an audit trail ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrailEnd {
    /// The newest entry's id.
    pub last: u64,
    /// Its hash in hex.
    pub hash: String,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path in the archive.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// SHA-256 in hex.
    pub sha256: String,
    /// Rows, when it is a rows file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
}

impl Manifest {
    /// Sums up the entries by component.
    pub fn sum_up(&mut self) {
        self.components =
            Component::ALL.map(|component| (component.as_str().to_owned(), ComponentContent::default())).into();
        for entry in &self.entries {
            for component in components_of(&entry.name) {
                let content = self.components.entry(component.as_str().to_owned()).or_default();
                content.entries += 1;
                content.rows += entry.rows.unwrap_or(0);
                content.bytes += entry.size;
            }
        }
    }

    /// Bytes of all entries.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().fold(0, |sum, entry| sum.saturating_add(entry.size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_count_for_each_of_their_components() {
        let entry = |name: &str, rows| Entry { name: name.to_owned(), size: 10, sha256: String::new(), rows };
        let entries = vec![entry("data/cron_jobs.rows", Some(3)), entry("config.toml", None), entry("mcp/x", None)];
        let mut manifest = Manifest { entries, ..Manifest::default() };
        manifest.sum_up();
        let of = |name: &str| manifest.components[name];
        assert_eq!(of("cron_jobs"), ComponentContent { entries: 1, rows: 3, bytes: 10 });
        assert_eq!(of("data"), of("cron_jobs"));
        assert_eq!(of("config").entries, 1);
        assert_eq!(of("agents"), ComponentContent::default());
        assert_eq!(manifest.bytes(), 30);
    }
}
