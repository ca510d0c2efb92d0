//! What a turn is given of the memory of its agent.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::MemoryEntryId;
use crate::kernel::attempt::Attempt;
use crate::kernel::id::SessionId;
use crate::kernel::outcome::Outcome;
use crate::kernel::record::is_default;
use crate::kernel::taint::Taint;
use crate::kernel::words::enum_words;

/// Where a model call has the memory entries from that stand in its prompt.
#[derive(Clone, Debug, PartialEq)]
pub enum Recall {
    /// It is the first of its turn: it searches, and says what it found with [`MemoryRecalled`] before it asks the model.
    Search(RecallScope),
    /// The turn has them.
    Stored(Arc<Recalled>),
}

/// Which entries of its agent a turn may be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecallScope {
    /// The user of the turn, where it is known. Entries about another user are never given.
    pub user: Option<Box<str>>,
    /// The session of the turn. Entries of another session are never given.
    pub session: SessionId,
}

/// What was found for a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recalled {
    /// How the search ended.
    pub status: RecallStatus,
    /// How it ranked: `lexical` or `hybrid`; empty where it did not end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: Box<str>,
    /// How long it took.
    pub duration_ms: u32,
    /// The entries that the model is given, the best first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub memories: Vec<RecalledEntry>,
}

impl Recalled {
    /// Is there anything that a turn is to keep of it? A search that found nothing leaves nothing.
    #[must_use]
    pub fn is_of_note(&self) -> bool {
        self.status != RecallStatus::Done || !self.memories.is_empty()
    }

    /// The untrusted content that any of the entries was made from.
    #[must_use]
    pub fn taint(&self) -> Taint {
        self.memories.iter().fold(Taint::NONE, |all, entry| all.with(entry.taint))
    }
}

enum_words! {
    /// How the search for a turn ended.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RecallStatus [as_str] {
        /// It was complete; it may have found nothing.
        #[default]
        Done = "done",
        /// It took too long, and the turn went on without.
        Late = "late",
        /// The entries or their index could not be read, and the turn went on without.
        Failed = "failed",
    }
}

/// An entry that a turn is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecalledEntry {
    /// Which.
    pub id: MemoryEntryId,
    /// What it said then. With the trace of an ended turn, its beginning.
    pub content: Box<str>,
    /// Its category; empty for none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub category: Box<str>,
    /// How well it matched; comparable within one turn only.
    pub score: f32,
    /// Untrusted content that it was made from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint: Taint,
    /// The plugin that brought it, which has its id to itself; empty for an entry of the memory.
    #[serde(default, skip_serializing_if = "is_default")]
    pub plugin: Box<str>,
}

/// The search for a turn has ended. Comes before the outcome of the model call of this attempt, and is dropped when the attempt
/// is stale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryRecalled(pub Attempt, pub Recalled);

impl Outcome for MemoryRecalled {
    const NAME: &'static str = "MemoryRecalled";
}
