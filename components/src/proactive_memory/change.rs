//! What an index over entries is told.

use std::sync::Arc;

use super::MemoryEntryId;
use crate::kernel::effect::Effect;
use crate::kernel::id::AgentId;

/// Entries of an agent were stored, changed or deleted, and the rows on disk say so. An index that is derived from the rows
/// reads them again.
///
/// Nothing repeats it after a restart. So an index keeps, for each agent, the [`number`](Self::number) that it has reached;
/// where [`MemoryEntriesRecord::changes`](super::record::MemoryEntriesRecord::changes) says another one, it scans the rows of
/// that agent, of which those with a higher [`change`](super::record::MemoryEntryRecord::change) than it has reached are new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntriesChanged {
    /// Whose.
    pub agent: AgentId,
    /// The number of this change.
    pub number: u64,
    /// Which entries. Those without a row, and those that are deleted, are no longer to be found.
    pub entries: ChangedEntries,
}

/// Which entries changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangedEntries {
    /// These.
    These(Arc<[MemoryEntryId]>),
    /// The agent is gone, with all entries.
    Gone,
}

impl Effect for EntriesChanged {}
