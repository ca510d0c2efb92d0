//! Entries of the memory that agents keep: facts about users and their work, found again by search (spec 2, Memory).

pub mod change;
pub mod recall;
pub mod record;

use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;
use crate::kernel::id::uuid_id;
use crate::kernel::words::enum_words;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "proactive_memory", uses: &[] };

uuid_id! {
    /// Names one entry of an agent's memory. A UUID v7, or the id that an imported entry had.
    MemoryEntryId
}

enum_words! {
    /// What an entry belongs to.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Level [ALL, as_str] {
        /// The user: preferences and facts that hold in every session.
        #[default]
        User = "user",
        /// A session: it expires.
        Session = "session",
        /// The agent: what it learned about its own work.
        Agent = "agent",
    }
}

impl Level {
    /// The level of this word, or of the word with `_memory` behind it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.strip_suffix("_memory").unwrap_or(word);
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}
