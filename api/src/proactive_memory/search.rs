//! Finding entries again. Implemented by a derived index; where there is none, the daemon says so.

use std::time::{Duration, Instant};

use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::recall::RecallScope;
use agentsvc_components::proactive_memory::{Level, MemoryEntryId};
use schemars::JsonSchema;
use serde::Serialize;

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

agentsvc_components::enum_words! {
    /// How entries were ranked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SearchMode [as_str] {
        /// By the words of the query (BM25).
        Lexical = "lexical",
        /// By words and by the similarity of vectors, joined by reciprocal rank.
        Hybrid = "hybrid",
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

/// What makes vectors of entries, and how far it has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Embeddings {
    /// The provider and the model, such as `openai/text-embedding-3-small` or `static/potion`.
    pub model: Box<str>,
    /// Dimensions of the vectors; null until the model has answered.
    pub dimensions: Option<u32>,
    /// What it does now.
    pub state: EmbeddingState,
    /// Entries whose vectors are stored. Left out where vectors are made by searches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded: Option<u64>,
    /// Why the provider is not asked at the moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What an embedder does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingState {
    /// All entries that it knows of have vectors.
    #[default]
    Ready,
    /// It compares the entries with their vectors, and makes those that are missing.
    Embedding,
    /// It waits: the provider failed, or a budget has no room.
    Waiting,
}

/// How long a search of the API waits for the vector of its query.
pub const QUERY_VECTOR_WAIT: Duration = Duration::from_secs(1);
/// How long a search of the API waits for an index that is being opened, or has not heard of the latest changes.
pub const INDEX_WAIT: Duration = Duration::from_secs(3);

/// How long a search waits for what it can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchWait {
    /// For the vector of the query, until then; it searches by words otherwise.
    pub vector_until: Instant,
    /// For the index, so long. Zero: what the index has now is searched, which may lack the latest changes.
    pub index: Duration,
}

impl SearchWait {
    /// As searches of the API wait.
    #[must_use]
    pub fn of_api() -> Self {
        Self { vector_until: Instant::now() + QUERY_VECTOR_WAIT, index: INDEX_WAIT }
    }
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

    /// The same, which says how long it waits.
    ///
    /// # Errors
    /// As of [`search`](Self::search).
    fn search_within(
        &self,
        scope: &SearchScope,
        query: &str,
        limit: usize,
        _wait: SearchWait,
    ) -> Result<Found, ContentError> {
        self.search(scope, query, limit)
    }

    /// What makes vectors; `None` for nothing. Never blocks.
    fn embeddings(&self) -> Option<Embeddings> {
        None
    }
}
