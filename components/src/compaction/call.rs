//! The writing of a summary: what it is asked with, and how it ends.

use serde::{Deserialize, Serialize};

use crate::kernel::attempt::Attempt;
use crate::kernel::effect::Effect;
use crate::kernel::holder::Holder;
use crate::kernel::id::{AgentId, LogId, SessionId};
use crate::kernel::outcome::Outcome;
use crate::kernel::record::is_default;
use crate::kernel::taint::Taint;
use crate::manifest::{ModelChoice, SharedManifest};
use crate::session::message::Usage;
use crate::usage::CallUse;

/// Have the older messages of a session summarised; comes back as [`SummaryOutcome`].
#[derive(Clone, Debug)]
pub struct SummaryCall {
    /// Fences the outcome.
    pub attempt: Attempt,
    /// Whose session.
    pub agent: AgentId,
    /// Who shares the places of what runs for it.
    pub holder: Holder,
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

impl Effect for SummaryCall {}

/// A summary was written, or will not be. Dropped when its attempt is stale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryOutcome(pub Attempt, pub SummaryEnd);

impl Outcome for SummaryOutcome {
    const NAME: &'static str = "Summary";
}

/// How the writing of a summary ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryEnd {
    /// Tokens of all calls it took, whatever came of them.
    pub usage: Usage,
    /// The summary, or one sentence for people that says why there is none.
    pub written: Result<Summary, String>,
    /// Each call it took, one usage event each.
    pub calls: Vec<CallUse>,
}

/// A summary as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// What was said, in few words.
    pub text: String,
    /// Turns with a smaller ordinal stand in it: as many as were asked for, or fewer when they are very long.
    pub upto: u32,
    /// Messages of the turns that it adds: those that a session's `message_count` counts.
    pub messages: u32,
    /// The provider that wrote it.
    pub provider: String,
    /// The model that wrote it.
    pub model: String,
    /// Untrusted content that it was made from beside the messages, such as what a plugin wrote.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint: Taint,
}
