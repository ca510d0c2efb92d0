//! Agents' memory as routes and tools read it. Implemented where the disk is known.

use agentsvc_components::AgentId;
use agentsvc_components::memory::record::MemoryRecord;

use crate::http::error::ContentError;

/// Which entries of an agent's memory to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryRange {
    /// Only keys that begin so; empty for all.
    pub prefix: Box<str>,
    /// Go on behind this key.
    pub after: Option<Box<str>>,
    /// At most this many.
    pub limit: usize,
    /// None behind the one with which their values have so many bytes; 0 for no such bound.
    pub bytes: usize,
}

/// One stored entry of an agent's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRow {
    /// Its key.
    pub key: Box<str>,
    /// Its value.
    pub record: MemoryRecord,
}

/// Reads the memory of agents. The calls may touch the disk: on a tokio worker use `spawn_blocking`.
pub trait MemoryStore: Send + Sync + 'static {
    /// One entry of an agent's memory; `None` when there is none under this key.
    fn memory(&self, agent: AgentId, key: &str) -> Result<Option<MemoryRecord>, ContentError>;

    /// Entries of an agent's memory in the order of their keys.
    fn memories(&self, agent: AgentId, range: &MemoryRange) -> Result<Vec<MemoryRow>, ContentError>;
}
