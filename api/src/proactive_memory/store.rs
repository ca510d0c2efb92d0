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

/// Rows that were read at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntryPage {
    /// At most as many as were asked for, and fewer where they are large.
    pub rows: Vec<EntryRow>,
    /// There are no more behind them.
    pub is_last: bool,
}

impl EntryPage {
    /// Behind which row the next page begins; `None` after the last page.
    #[must_use]
    pub fn next(&self) -> Option<(AgentId, MemoryEntryId)> {
        self.rows.last().filter(|_| !self.is_last).map(|row| (row.agent, row.id))
    }
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
    ) -> Result<EntryPage, ContentError>;

    /// Entries about a user, of all agents, in the order of agents and ids, behind `after`.
    fn of_user(
        &self,
        user: &str,
        after: Option<(AgentId, MemoryEntryId)>,
        limit: usize,
    ) -> Result<EntryPage, ContentError>;
}
