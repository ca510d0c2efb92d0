//! Finding entries again. Implemented by a derived index; where there is none, the daemon says so.

use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::recall::RecallScope;
use agentsvc_components::proactive_memory::{Level, MemoryEntryId};

use crate::http::error::ContentError;

/// Which entries are searched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchScope {
    /// Only those of this agent.
    pub agent: Option<AgentId>,
    /// Only those about this user.
    pub user: Option<Box<str>>,
    /// Only those of this level.
    pub level: Option<Level>,
    /// Only those that a turn of this scope may be given.
    pub turn: Option<RecallScope>,
}

/// How entries were ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchMode {
    /// By the words of the query (BM25).
    Lexical,
    /// By words and by the similarity of vectors, joined by reciprocal rank.
    Hybrid,
}

impl SearchMode {
    /// The word of the JSON form.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lexical => "lexical",
            Self::Hybrid => "hybrid",
        }
    }
}

/// An entry that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Which.
    pub id: MemoryEntryId,
    /// Whose.
    pub agent: AgentId,
    /// Higher is better; comparable within one answer only.
    pub score: f32,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// How it was ranked.
    pub mode: SearchMode,
    /// The best first.
    pub hits: Vec<Hit>,
}

/// Searches entries of the memory of agents.
///
/// Hits may be out of date: the routes read the rows, and leave out what is no longer there, was replaced, or has expired.
pub trait MemorySearch: Send + Sync + 'static {
    /// Best first, at most `limit`. Blocks: on a tokio worker use `spawn_blocking`.
    ///
    /// # Errors
    /// The index or the store could not be read.
    fn search(&self, scope: &SearchScope, query: &str, limit: usize) -> Result<Found, ContentError>;
}
