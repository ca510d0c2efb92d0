//! Entries as routes and the index read them. Implemented where the disk is known.

use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;

use crate::http::error::ContentError;

/// One stored entry.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryRow {
    /// Whose.
    pub agent: AgentId,
    /// Which.
    pub id: MemoryEntryId,
    /// What it says.
    pub record: MemoryEntryRecord,
}

/// Reads the rows of entries, those that were replaced or have expired too. The calls touch the disk: on a tokio worker use
/// `spawn_blocking`.
pub trait EntryStore: Send + Sync + 'static {
    /// One entry; `None` when the agent has none with this id.
    fn entry(&self, agent: AgentId, id: MemoryEntryId) -> Result<Option<MemoryEntryRecord>, ContentError>;

    /// Whose the entry with this id is.
    fn owner(&self, id: MemoryEntryId) -> Result<Option<AgentId>, ContentError>;

    /// Entries in the order of agents and ids, behind `after`: of one agent, or of all.
    fn entries(
        &self,
        agent: Option<AgentId>,
        after: Option<(AgentId, MemoryEntryId)>,
        limit: usize,
    ) -> Result<Vec<EntryRow>, ContentError>;

    /// Entries about a user, of all agents, in the order of agents and ids, behind `after`.
    fn of_user(
        &self,
        user: &str,
        after: Option<(AgentId, MemoryEntryId)>,
        limit: usize,
    ) -> Result<Vec<EntryRow>, ContentError>;
}
