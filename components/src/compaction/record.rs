//! The stored forms of a compaction that is under way, and of the summary it ends in.

use serde::{Deserialize, Serialize};

use crate::kernel::id::{CompactionId, LogId, SessionId};
use crate::kernel::record::record;
use crate::kernel::time::Timestamp;
use crate::session::message::Usage;

/// One compaction. Who waits for it is not here: a restart ends their connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionRecord {
    /// Also in the key.
    pub id: CompactionId,
    /// Which session.
    pub session: SessionId,
    /// The session's log when the compaction was planned.
    pub log: LogId,
    /// Turns with a smaller ordinal are summarised already.
    pub from: u32,
    /// Turns with a smaller ordinal are to be summarised.
    pub upto: u32,
    /// The last attempt given out.
    pub attempt: u32,
}

record!(CompactionRecord: b'c', CompactionId, id);

/// What stands for the older messages of a log. Older summaries stay beside the newest, as the messages do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryRecord {
    /// Turns with a smaller ordinal stood in the summary before this one; 0 for the first.
    pub from: u32,
    /// Turns with a smaller ordinal stand in this one. Also in the key.
    pub upto: u32,
    /// Messages that it replaces: those that `message_count` counts, an older summary as one.
    pub messages: u32,
    /// The summary, as the model wrote it.
    pub text: String,
    /// When it was stored.
    pub created_at: Timestamp,
    /// `provider/model` that wrote it.
    pub model: Box<str>,
    /// Tokens of the calls that wrote it.
    pub usage: Usage,
}
