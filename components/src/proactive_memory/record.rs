//! The stored forms: an entry, and how much an agent has of them.

use serde::{Deserialize, Serialize};

use super::{Level, MemoryEntryId};
use crate::kernel::id::AgentId;
use crate::kernel::record::{Record, is_default};
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;

/// One entry; its agent and id are in the record's key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryEntryRecord {
    /// The fact, as text.
    pub content: Box<str>,
    /// What it belongs to.
    pub level: Level,
    /// A word such as `preference`; empty for none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub category: Box<str>,
    /// The user that it is about, in the words of the client.
    #[serde(default, skip_serializing_if = "is_default")]
    pub user: Option<Box<str>>,
    /// Words of the client.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tags: Vec<Box<str>>,
    /// A JSON object, compact; empty for none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub metadata: Box<str>,
    /// Where it comes from, such as `api`, `rules` or `import`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub source: Box<str>,
    /// How sure it is, 0 to 1.
    pub confidence: f32,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// When its content or what describes it changed last.
    pub updated_at: Timestamp,
    /// When it was found or read last; at first, when it was stored.
    pub accessed_at: Timestamp,
    /// How often it was found, at most once a minute.
    #[serde(default, skip_serializing_if = "is_default")]
    pub access_count: u32,
    /// When its confidence was last lowered for its age.
    #[serde(default, skip_serializing_if = "is_default")]
    pub decayed_at: Option<Timestamp>,
    /// When it expires.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expires_at: Option<Timestamp>,
    /// Untrusted content that it was made from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint: Taint,
    /// When it was replaced by another entry. It is shown and found no more, and erased later.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deleted_at: Option<Timestamp>,
    /// The entry that replaced it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub merged_into: Option<MemoryEntryId>,
    /// The number of the change of the agent's entries that stored this content; see
    /// [`EntriesChanged`](super::change::EntriesChanged).
    pub change: u64,
    /// What the content was before, the oldest first; a bounded number.
    #[serde(default, skip_serializing_if = "is_default")]
    pub versions: Vec<EntryVersion>,
}

/// A content that an entry had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryVersion {
    /// The text.
    pub content: Box<str>,
    /// When another took its place.
    pub replaced_at: Timestamp,
}

impl MemoryEntryRecord {
    /// Bytes of its texts: what counts towards the limit of an agent.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let lists: usize = self.tags.iter().map(|tag| tag.len()).sum();
        let versions: usize = self.versions.iter().map(|version| version.content.len()).sum();
        let user = self.user.as_ref().map_or(0, |user| user.len());
        let texts = self.content.len() + self.category.len() + self.metadata.len() + self.source.len();
        (texts + user + lists + versions) as u64
    }

    /// Is it shown and found at this moment? Neither when it was replaced nor when it has expired.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.deleted_at.is_none() && self.expires_at.is_none_or(|expires| expires > now)
    }
}

/// How many entries an agent has; agents that never had any have no such record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryCounts {
    /// Entries of each level, in the order of [`Level::ALL`]; those that were replaced are not among them.
    pub levels: [u32; 3],
    /// Entries that were replaced and not yet erased.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replaced: u32,
    /// Bytes of the texts of all.
    pub bytes: u64,
    /// Entries of each category, those without one under the empty word; a bounded number of words.
    #[serde(default, skip_serializing_if = "is_default")]
    pub categories: Vec<(Box<str>, u32)>,
}

impl EntryCounts {
    /// Entries that were not replaced.
    #[must_use]
    pub fn entries(&self) -> u32 {
        self.levels.iter().sum()
    }
}

/// What the world keeps of an agent's entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryEntriesRecord {
    /// Also in the key.
    pub agent: AgentId,
    /// How many there are.
    pub counts: EntryCounts,
    /// Changes so far; grows with each, and is kept when all entries are deleted.
    pub changes: u64,
    /// The earliest moment at which an entry expires or is to be erased, or one before it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub due: Option<Timestamp>,
}

impl Record for MemoryEntriesRecord {
    const KEY: u8 = b'E';
    type Id = AgentId;

    fn id(&self) -> AgentId {
        self.agent
    }
}
