//! What the API and the effects read from the content store. Implemented where the disk is known.

use agentsvc_components::compaction::record::SummaryRecord;
use agentsvc_components::memory::record::MemoryRecord;
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::turn::trace::TraceRecord;
use agentsvc_components::usage::record::UsageRecord;
use agentsvc_components::{AgentId, LogId, Timestamp, TurnId};

/// The content store could not be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ContentError {
    /// The disk failed, or what is on it makes no sense.
    #[error("the content store could not be read: {0}")]
    Failed(String),
    /// One world is taking the place of another; trying again helps.
    #[error("the world is being exchanged for another")]
    Exchanging,
}

/// One stored message and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRow {
    /// The turn's place in the session.
    pub ordinal: u32,
    /// The row's place in the turn.
    pub index: u32,
    /// The message.
    pub record: MessageRecord,
}

/// Which messages of a log to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRange {
    /// Oldest first, from after `(ordinal, index)` on, at most `limit`.
    After {
        /// Where to go on; `None` from the start.
        after: Option<(u32, u32)>,
        /// At most this many.
        limit: usize,
    },
    /// The newest `limit` messages of turns from `from` up to and including `ordinal`, still given oldest first.
    NewestSince {
        /// The first turn to read.
        from: u32,
        /// The last turn to read.
        ordinal: u32,
        /// At most this many.
        limit: usize,
    },
    /// The newest `limit` messages of turns up to and including `ordinal`, still given oldest first.
    Newest {
        /// The last turn to read; `u32::MAX` for all.
        ordinal: u32,
        /// At most this many.
        limit: usize,
    },
}

/// Which entries of an agent's memory to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryRange {
    /// Only keys that begin so; empty for all.
    pub prefix: Box<str>,
    /// Go on behind this key.
    pub after: Option<Box<str>>,
    /// At most this many.
    pub limit: usize,
}

/// One stored entry of an agent's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRow {
    /// Its key.
    pub key: Box<str>,
    /// Its value.
    pub record: MemoryRecord,
}

/// Which usage events to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRange {
    /// From this moment on.
    pub from: Timestamp,
    /// Before this one.
    pub to: Timestamp,
    /// Go on behind this key of an earlier answer.
    pub after: Option<Vec<u8>>,
    /// At most this many.
    pub limit: usize,
}

/// One stored usage event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// Its key, to go on behind.
    pub key: Vec<u8>,
    /// The event.
    pub record: UsageRecord,
}

/// Reads content. A reader that knows no traces or memory has none. The calls may touch the disk: on a tokio worker use `spawn_blocking`.
pub trait Content: Send + Sync + 'static {
    /// Messages of `log`, oldest first. An unknown log is empty.
    fn messages(&self, log: LogId, range: MessageRange) -> Result<Vec<MessageRow>, ContentError>;

    /// A tool result that was too long for its row, whole; `None` when there is none at this place of the log.
    fn result(&self, log: LogId, ordinal: u32, index: u32) -> Result<Option<String>, ContentError>;

    /// What stands for the messages of `log` before turn `upto`; `None` when there is no such summary.
    fn summary(&self, log: LogId, upto: u32) -> Result<Option<SummaryRecord>, ContentError>;

    /// The summaries of `log`, oldest first: the newest [`SUMMARIES_MAX`](agentsvc_components::kernel::limit::SUMMARIES_MAX).
    fn summaries(&self, log: LogId) -> Result<Vec<SummaryRecord>, ContentError>;
    /// The traces of an agent's ended turns, newest first, from before `before` on.
    fn traces(&self, agent: AgentId, before: Option<TurnId>, limit: usize) -> Result<Vec<TraceRecord>, ContentError> {
        let _ = (agent, before, limit);
        Ok(Vec::new())
    }

    /// How many traces of an agent there are.
    fn trace_count(&self, agent: AgentId) -> Result<u64, ContentError> {
        let _ = agent;
        Ok(0)
    }

    /// One entry of an agent's memory; `None` when there is none under this key.
    fn memory(&self, agent: AgentId, key: &str) -> Result<Option<MemoryRecord>, ContentError> {
        let _ = (agent, key);
        Ok(None)
    }

    /// Entries of an agent's memory in the order of their keys.
    fn memories(&self, agent: AgentId, range: &MemoryRange) -> Result<Vec<MemoryRow>, ContentError> {
        let _ = (agent, range);
        Ok(Vec::new())
    }

    /// Usage events of a range, oldest first.
    fn usage(&self, range: &UsageRange) -> Result<Vec<UsageRow>, ContentError> {
        let _ = range;
        Ok(Vec::new())
    }

    /// How many different agents asked a model on the days from one to another, both included, counted from 1970-01-01.
    fn active_agents(&self, from: i64, to: i64) -> Result<usize, ContentError> {
        let _ = (from, to);
        Ok(0)
    }

    /// The manifest of an agent as it was written; `None` when there is none.
    fn manifest_text(&self, agent: AgentId) -> Result<Option<String>, ContentError>;
}
