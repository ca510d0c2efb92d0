//! What happened in the world. Triggers, webhooks, audit and the log read these.

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, SessionId, TurnId};
use crate::message::Usage;

/// Something that happened, in the past tense.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// An agent was created.
    AgentSpawned {
        /// Which.
        agent: AgentId,
        /// Its name.
        name: String,
    },
    /// A stopped agent takes messages again.
    AgentStarted {
        /// Which.
        agent: AgentId,
    },
    /// An agent takes no more messages.
    AgentStopped {
        /// Which.
        agent: AgentId,
    },
    /// An agent's manifest, mode or identity changed.
    AgentUpdated {
        /// Which.
        agent: AgentId,
    },
    /// An agent was removed.
    AgentTerminated {
        /// Which.
        agent: AgentId,
        /// The name it had.
        name: String,
    },
    /// A message was taken for a session.
    MessageReceived {
        /// Whose.
        agent: AgentId,
        /// In which session.
        session: SessionId,
        /// The turn that will answer.
        turn: TurnId,
    },
    /// A turn asked its model for the first time.
    TurnStarted {
        /// Whose.
        agent: AgentId,
        /// Which.
        turn: TurnId,
    },
    /// A turn gave its answer.
    TurnCompleted {
        /// Whose.
        agent: AgentId,
        /// Which.
        turn: TurnId,
        /// Tokens of the whole turn.
        usage: Usage,
        /// Model calls made.
        iterations: u32,
    },
    /// A turn ended without an answer.
    TurnFailed {
        /// Whose.
        agent: AgentId,
        /// Which.
        turn: TurnId,
        /// A stable word, such as `provider_timeout` or `turn_stopped`.
        code: String,
        /// One sentence.
        error: String,
    },
    /// The older messages of a session were replaced by a summary.
    SessionCompacted {
        /// Whose.
        agent: AgentId,
        /// Which session.
        session: SessionId,
        /// Messages before.
        messages_before: u32,
        /// Messages after, the summary included.
        messages_after: u32,
    },
    /// A turn's tool call came back.
    ToolCalled {
        /// Whose.
        agent: AgentId,
        /// Which turn.
        turn: TurnId,
        /// The tool's name.
        tool: String,
        /// Did it fail?
        is_error: bool,
    },
    /// The loop guard refused a turn's tool call.
    ToolRefused {
        /// Whose.
        agent: AgentId,
        /// Which turn.
        turn: TurnId,
        /// The tool's name.
        tool: String,
        /// It was the circuit breaker: the turn ends.
        breaker: bool,
    },
    /// A tool call ran when the daemon died, and must not run twice: nobody knows whether it took effect.
    ToolUnknown {
        /// Whose.
        agent: AgentId,
        /// Which turn.
        turn: TurnId,
        /// The tool's name.
        tool: String,
        /// The log row of the call.
        index: u32,
    },
}

impl Event {
    /// The kind, as in the JSON form.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::AgentSpawned { .. } => "agent_spawned",
            Self::AgentStarted { .. } => "agent_started",
            Self::AgentStopped { .. } => "agent_stopped",
            Self::AgentUpdated { .. } => "agent_updated",
            Self::AgentTerminated { .. } => "agent_terminated",
            Self::MessageReceived { .. } => "message_received",
            Self::TurnStarted { .. } => "turn_started",
            Self::TurnCompleted { .. } => "turn_completed",
            Self::TurnFailed { .. } => "turn_failed",
            Self::SessionCompacted { .. } => "session_compacted",
            Self::ToolCalled { .. } => "tool_called",
            Self::ToolRefused { .. } => "tool_refused",
            Self::ToolUnknown { .. } => "tool_unknown",
        }
    }
}
