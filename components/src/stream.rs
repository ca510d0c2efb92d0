//! What subscribers of a session see while a turn runs (spec 1, SSE on message/stream).

use serde::{Deserialize, Serialize};

use crate::id::{SessionId, TurnId};
use crate::message::Usage;

/// One event of a turn, on its way to every subscriber of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamItem {
    /// The session that is watched.
    pub session: SessionId,
    /// The turn that speaks.
    pub turn: TurnId,
    /// What happened.
    pub event: StreamEvent,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamEvent {
    /// A piece of the answer.
    Chunk {
        /// The text delta.
        content: String,
    },
    /// The agent calls a tool.
    ToolUse {
        /// The tool's name.
        tool: String,
    },
    /// A tool call completed.
    ToolResult {
        /// The tool's name.
        tool: String,
        /// The tool's input as JSON text.
        input: String,
    },
    /// A private note to the owner; right before `Done`.
    OwnerNotice {
        /// The note.
        text: String,
    },
    /// The turn ended and its answer is durable. The last event of a turn.
    Done {
        /// Tokens of the whole turn.
        usage: Usage,
        /// It was stopped before it was done.
        stopped: bool,
        /// Model calls made.
        iterations: u32,
        /// The whole answer; only of a turn that was posted to be watched.
        response: Option<Box<str>>,
    },
    /// The turn ended otherwise. The last event of a turn.
    Error {
        /// One sentence for people.
        error: String,
        /// A stable word for programs.
        code: String,
    },
}

impl StreamEvent {
    /// True for the event that ends a turn.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Error { .. })
    }
}
