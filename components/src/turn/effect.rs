//! What turns ask of the outside: models and tools.

use std::sync::Arc;

use crate::kernel::attempt::Attempt;
use crate::kernel::effect::Effect;
use crate::kernel::holder::Holder;
use crate::kernel::id::{AgentId, LogId, SessionId, TurnId};
use crate::kernel::taint::{AgentTaint, Taint};
use crate::kernel::time::Timestamp;
use crate::manifest::{ModelChoice, SharedManifest};
use crate::proactive_memory::recall::Recall;
use crate::session::message::ToolCall;
use crate::turn::TurnRequest;

/// Ask a model; comes back as [`ModelOutcome`](crate::turn::outcome::ModelOutcome).
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// Fences the outcome.
    pub attempt: Attempt,
    /// Whose turn.
    pub agent: AgentId,
    /// Who shares the places of what runs for it.
    pub holder: Holder,
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
    /// What its prompt shows of the agent's memory entries; `None` for nothing.
    pub recall: Option<Recall>,
    /// What the request asked for beside its message.
    pub request: Option<Arc<TurnRequest>>,
    /// Someone reads the answer as it is written.
    pub streaming: bool,
    /// Money is reserved for it: an answer without a bound of its own gets this one, in tokens, and one that broke off is
    /// not asked for again at the same model. `None` when no budget bounds it.
    pub answer_tokens_max: Option<u32>,
}

/// Run a tool; comes back as [`ToolOutcome`](crate::turn::outcome::ToolOutcome).
#[derive(Clone, Debug)]
pub struct ToolRun {
    /// Fences the outcome.
    pub attempt: Attempt,
    /// Whose turn.
    pub agent: AgentId,
    /// Whose share of places, and of the workspaces, it takes.
    pub holder: Holder,
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
    /// How often it went out before the daemon started anew, and may have run.
    pub runs_before: u8,
    /// When it first went out.
    pub sent_at: Timestamp,
    /// Untrusted content that the turn has read when it calls.
    pub taint: Taint,
    /// What its agent has.
    pub agent_taint: AgentTaint,
    /// The W3C `traceparent` of the request that the turn goes back to, where it brought one.
    pub trace: Option<Box<str>>,
    /// The user that the turn is for, in the words of the client: it may read what is kept about that user.
    pub user: Option<Box<str>>,
    /// The turn consolidates the memory of its agent: it changes entries of all conversations.
    pub consolidates: bool,
}

impl Effect for ModelCall {}

impl ModelCall {
    /// Which turn it is for.
    #[must_use]
    pub const fn turn(&self) -> TurnId {
        TurnId(self.attempt.job.0)
    }
}

impl Effect for ToolRun {}

impl ToolRun {
    /// Which turn it is for.
    #[must_use]
    pub const fn turn(&self) -> TurnId {
        TurnId(self.attempt.job.0)
    }
}
