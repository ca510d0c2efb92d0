//! The messages of sessions as the API and the effects read them. Implemented where the disk is known.

use agentsvc_components::LogId;
use agentsvc_components::compaction::record::SummaryRecord;
use agentsvc_components::session::message_record::MessageRecord;

use crate::http::error::ContentError;

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
    /// Oldest first, from after `(ordinal, index)` on, at most `limit`, and none behind the one with which they have `bytes` in
    /// the store. None only at the end of the log.
    Chunk {
        /// Where to go on; `None` from the start.
        after: Option<(u32, u32)>,
        /// At most this many.
        limit: usize,
        /// About so many bytes.
        bytes: usize,
    },
    /// The newest messages before `(ordinal, index)`, still given oldest first: at most `limit`, and none before the one with
    /// which they have `bytes` in the store.
    Newest {
        /// The place before which to read; `None` for the end of the log.
        before: Option<(u32, u32)>,
        /// At most this many.
        limit: usize,
        /// About so many bytes.
        bytes: usize,
    },
}

/// Reads the messages of sessions. The calls may touch the disk: on a tokio worker use `spawn_blocking`.
pub trait Content: Send + Sync + 'static {
    /// Messages of `log`, oldest first. An unknown log is empty.
    fn messages(&self, log: LogId, range: MessageRange) -> Result<Vec<MessageRow>, ContentError>;

    /// A tool result that was too long for its row, whole; `None` when there is none at this place of the log.
    fn result(&self, log: LogId, ordinal: u32, index: u32) -> Result<Option<String>, ContentError>;

    /// What stands for the messages of `log` before turn `upto`; `None` when there is no such summary.
    fn summary(&self, log: LogId, upto: u32) -> Result<Option<SummaryRecord>, ContentError>;

    /// The summaries of `log`, oldest first: the newest [`SUMMARIES_MAX`](agentsvc_components::kernel::limit::SUMMARIES_MAX).
    fn summaries(&self, log: LogId) -> Result<Vec<SummaryRecord>, ContentError>;
}
