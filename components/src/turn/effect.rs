//! Work for the outside. An effect starts only after the step that asked for it is on disk.

use std::sync::Arc;

use crate::audit::record::AuditHead;
use crate::kernel::attempt::Attempt;
use crate::kernel::id::{AgentId, LogId, SessionId};
use crate::kernel::time::Timestamp;
use crate::manifest::{ModelChoice, SharedManifest};
use crate::session::message::ToolCall;
use crate::taint::{AgentTaint, Taint};
use crate::turn::TurnRequest;
use crate::turn::stream::StreamItem;

/// Work for the outside.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Ask a model; comes back as [`OutcomeKind::Model`](crate::turn::outcome::OutcomeKind::Model).
    CallModel(Box<ModelCall>),
    /// Have the older messages of a session summarised; comes back as
    /// [`OutcomeKind::Summary`](crate::turn::outcome::OutcomeKind::Summary).
    Summarize(Box<SummaryCall>),
    /// Give up the model or tool calls of this attempt; each still comes back, as aborted.
    Abort(Attempt),
    /// Run a tool; comes back as [`OutcomeKind::Tool`](crate::turn::outcome::OutcomeKind::Tool).
    RunTool(Box<ToolRun>),
    /// Tell the subscribers of a session. Nothing comes back.
    Publish(StreamItem),
    /// Erase a log that no session points at any more; comes back as
    /// [`OutcomeKind::Swept`](crate::turn::outcome::OutcomeKind::Swept).
    Sweep(LogId),
    /// Erase the traces and the memory of an agent that is gone; comes back as
    /// [`OutcomeKind::SweptAgent`](crate::turn::outcome::OutcomeKind::SweptAgent).
    SweepAgent(AgentId),
    /// Erase the oldest traces of an agent, of which there may be too many. Nothing comes back.
    TrimTraces(AgentId),
    /// Erase the usage events that are older. Nothing comes back.
    SweepUsage(Timestamp),
    /// Sign a checkpoint of the audit trail up to its end as it is now. Nothing comes back.
    SealAudit(AuditHead),
}

/// Everything a driver needs to ask a model.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// Fences the outcome.
    pub attempt: Attempt,
    /// Whose turn.
    pub agent: AgentId,
    /// The agent's name, for the prompt.
    pub agent_name: Box<str>,
    /// In which session.
    pub session: SessionId,
    /// Where the conversation is.
    pub log: LogId,
    /// Rows up to and including this turn's ordinal belong to the prompt.
    pub ordinal: u32,
    /// The agent's manifest.
    pub manifest: SharedManifest,
    /// The model to ask, with the daemon's defaults filled in.
    pub model: ModelChoice,
    /// Turns with a smaller ordinal stand in the prompt as their summary; 0 when there is none.
    pub compacted: u32,
    /// The agent's open goals, as they stand behind its system text.
    pub goals: Option<Arc<str>>,
    /// What the request asked for beside its message.
    pub request: Option<Arc<TurnRequest>>,
    /// Someone reads the answer as it is written.
    pub streaming: bool,
    /// Money is reserved for it: an answer without a bound of its own gets this one, in tokens, and one that broke off is
    /// not asked for again at the same model. `None` when no budget bounds it.
    pub answer_tokens_max: Option<u32>,
}

/// Everything needed to summarise the older messages of a session.
#[derive(Clone, Debug)]
pub struct SummaryCall {
    /// Fences the outcome.
    pub attempt: Attempt,
    /// Whose session.
    pub agent: AgentId,
    /// The agent's name, which stands for it in the prompt.
    pub agent_name: Box<str>,
    /// Which session.
    pub session: SessionId,
    /// Where the conversation is.
    pub log: LogId,
    /// Turns with a smaller ordinal stand in the summary stored under it; 0 when there is none.
    pub from: u32,
    /// Turns with a smaller ordinal are to be summarised, that summary included.
    pub upto: u32,
    /// The agent's manifest, for its fallback models.
    pub manifest: SharedManifest,
    /// The model to ask, with the daemon's defaults filled in.
    pub model: ModelChoice,
    /// Money is reserved for it, for so many calls; what is left is summarised another time. `None` when no budget
    /// bounds it.
    pub calls_max: Option<u32>,
}

/// Everything a tool needs to run.
#[derive(Clone, Debug)]
pub struct ToolRun {
    /// Fences the outcome.
    pub attempt: Attempt,
    /// Whose turn.
    pub agent: AgentId,
    /// The agent's name, which also names its workspace.
    pub agent_name: Box<str>,
    /// In which session.
    pub session: SessionId,
    /// Where the conversation is.
    pub log: LogId,
    /// Which turn of the log.
    pub ordinal: u32,
    /// The agent's manifest, for its capabilities.
    pub manifest: SharedManifest,
    /// The index of the log row that the result goes to.
    pub index: u32,
    /// The call as the model made it.
    pub call: ToolCall,
    /// It went out before the daemon started anew, and may have run.
    pub resumed: bool,
    /// Untrusted content that the turn has read when it calls.
    pub taint: Taint,
    /// What its agent has.
    pub agent_taint: AgentTaint,
    /// The W3C `traceparent` of the request that the turn goes back to, where it brought one.
    pub trace: Option<Box<str>>,
}
