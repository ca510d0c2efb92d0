//! The stored form of a turn that has ended: what it did, when and at what price. The messages are rows of the log.

use serde::{Deserialize, Serialize};

use crate::kernel::effect::Effect;
use crate::kernel::id::{AgentId, LogId, SessionId, TurnId};
use crate::kernel::time::Timestamp;
use crate::proactive_memory::recall::Recalled;
use crate::session::message::Usage;
use crate::turn::{Origin, TurnEnd};

/// An ended turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceRecord {
    /// Also in the key.
    pub turn: TurnId,
    /// In which session.
    pub session: SessionId,
    /// The log that holds its messages, unless it was erased since.
    pub log: LogId,
    /// Which turn of the log.
    pub ordinal: u32,
    /// Source of the message.
    pub origin: Origin,
    /// When the message was taken.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How it ended.
    pub end: TurnEnd,
    /// Error code of a failure.
    pub code: Option<Box<str>>,
    /// One sentence for a failure.
    pub error: Option<Box<str>>,
    /// Tokens of all its model calls.
    pub usage: Usage,
    /// Model calls.
    pub iterations: u32,
    /// Tool calls.
    pub tool_calls: u32,
    /// Model and tool calls in order of completion.
    pub steps: Vec<TraceStep>,
    /// Notes to the owner.
    pub notices: Vec<Box<str>>,
    /// What its model was given of the memory of its agent, where that was searched. Of each content, the
    /// beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalled: Option<Recalled>,
}

/// One model or tool call of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceStep {
    /// Which of the two.
    pub kind: StepKind,
    /// `provider/model`, or the tool's name.
    pub name: Box<str>,
    /// When it went out.
    pub started_at: Timestamp,
    /// How long it took, in the world's time.
    pub duration_ms: u32,
    /// Tokens; model calls only.
    pub usage: Option<Usage>,
    /// How it ended.
    pub status: StepStatus,
    /// Why it failed: the beginning of its error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<str>>,
}

/// What a step was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// A model call.
    Model,
    /// A tool call.
    Tool,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// With an answer or a result.
    Ok,
    /// With an error.
    Error,
    /// The daemon died while it ran: nobody knows whether it took effect.
    Unknown,
    /// The loop guard refused it; it did not run.
    Refused,
    /// It was given up by a stop.
    Stopped,
}

/// Erase the oldest traces of an agent, of which there may be too many. Nothing comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimTraces(pub AgentId);

impl Effect for TrimTraces {}
