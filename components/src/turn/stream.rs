//! What subscribers of a session see while a turn runs (spec 1, SSE on message/stream).

use crate::kernel::effect::Effect;
use crate::kernel::error_code::ErrorCode;
use crate::kernel::id::{SessionId, TurnId};
use crate::session::message::{ToolCall, Usage};
use crate::turn::outcome::StopReason;

/// One event of a turn, on its way to every subscriber of the session. As an effect, nothing comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamItem {
    /// The session that is watched.
    pub session: SessionId,
    /// The turn that speaks.
    pub turn: TurnId,
    /// An event.
    pub event: StreamEvent,
}

impl Effect for StreamItem {}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        /// Model calls.
        iterations: u32,
        /// Why the model stopped writing.
        stop: StopReason,
        /// The whole answer, or what was written before a stop; only of a turn that was posted to be watched.
        response: Option<Box<str>>,
        /// Calls of the client's own tools, which the client is to run.
        tool_calls: Vec<ToolCall>,
    },
    /// The turn ended otherwise. The last event of a turn.
    Error {
        /// A human-readable message.
        error: String,
        /// A stable word for programs.
        code: ErrorCode,
    },
}

impl StreamEvent {
    /// The end of a turn that said nothing in one model call.
    #[must_use]
    pub fn done(usage: Usage, stopped: bool) -> Self {
        let (stop, response, tool_calls) = (StopReason::default(), None, Vec::new());
        Self::Done { usage, stopped, iterations: 1, stop, response, tool_calls }
    }

    /// True for the event that ends a turn.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Error { .. })
    }
}
