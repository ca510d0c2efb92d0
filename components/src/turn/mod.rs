//! The turn: one message's way through the model to its answer; an entity with a
//! [`TurnId`](crate::TurnId) and this component. A turn is parked data, never a waiting task.

use crate::kernel::domain::Domain;
pub mod effect;
pub mod error_codes;
pub mod outcome;
pub mod profile;
pub mod record;
pub mod stream;
pub mod trace;

use std::sync::Arc;

use bevy_ecs::prelude::{Component, Entity};
use serde::{Deserialize, Serialize};

use crate::a2a::A2aTaskId;
use crate::channel::ChatMessageId;
use crate::hook::HookCallId;
use crate::kernel::holder::Holder;
use crate::kernel::id::{AgentId, ApprovalId, RunId, ScheduleId, SessionId, TriggerId, TurnId};
use crate::kernel::record::is_default;
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;
use crate::manifest::ModelChoice;
use crate::proactive_memory::recall::Recalled;
use crate::prompt::TurnVariant;
use crate::session::message::{ToolCall, Usage};
use crate::turn::profile::TurnProfile;
use crate::turn::trace::TraceStep;

/// What this domain is.
pub const DOMAIN: Domain = Domain {
    name: "turn",
    uses: &["a2a", "channel", "hook", "manifest", "proactive_memory", "prompt", "session", "usage"],
};

/// Where a turn is. The table of transitions stands at the head of `systems/src/turn/mod.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TurnState {
    /// Behind another turn in the session's inbox.
    Queued,
    /// First in its session, waiting for a slot of its provider.
    #[serde(alias = "Admitting")]
    Reserving,
    /// A model call is out.
    Calling,
    /// Tool calls are out.
    WaitingForTools,
    /// Nothing is out, and every tool call without a result waits for a person's approval.
    WaitingForApproval,
    /// Stop was asked; waiting for the call that is out to come back.
    Stopping,
}

impl TurnState {
    /// Tool calls without a result wait: for the tools, or for a person.
    #[must_use]
    pub const fn has_calls(self) -> bool {
        matches!(self, Self::WaitingForTools | Self::WaitingForApproval)
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// With the model's answer.
    Done,
    /// Without an answer; a code says why.
    Failed,
    /// By a stop: what was out was given up.
    Stopped,
    /// By an interrupt, at a boundary between tool calls.
    Interrupted,
}

/// Where a turn's message came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The REST API.
    #[default]
    Api,
    /// A WebSocket.
    WebSocket,
    /// The OpenAI-compatible endpoint.
    OpenAi,
    /// Another agent, through `agent_send`.
    Agent {
        /// The turn that sent it.
        parent: TurnId,
    },
    /// An agent of another node.
    Peer,
    /// A trigger fired.
    Trigger {
        /// Which.
        trigger: TriggerId,
    },
    /// A schedule or a cron job fired.
    Schedule {
        /// Which.
        schedule: ScheduleId,
    },
    /// A step of a workflow's run.
    Workflow {
        /// Which run.
        run: RunId,
        /// Which of its steps, counted from 0.
        step: u16,
    },
    /// A client of the A2A protocol.
    A2a {
        /// The task that it sent.
        task: A2aTaskId,
    },
    /// The agent consolidates its memory.
    Dream {
        /// Which agent.
        agent: AgentId,
    },
    /// A hook was called, or a file came into the inbox.
    Hook {
        /// The call.
        call: HookCallId,
    },
    /// A message of a chat.
    Channel {
        /// Which message.
        message: ChatMessageId,
    },
}

impl Origin {
    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::WebSocket => "websocket",
            Self::OpenAi => "openai",
            Self::Agent { .. } => "agent",
            Self::Peer => "peer",
            Self::Trigger { .. } => "trigger",
            Self::Schedule { .. } => "schedule",
            Self::Workflow { .. } => "workflow",
            Self::A2a { .. } => "a2a",
            Self::Dream { .. } => "dream",
            Self::Hook { .. } => "hook",
            Self::Channel { .. } => "channel",
        }
    }

    /// Does a new incoming message start such a turn? Then it clears the interrupt flag (spec 1, Interrupting a turn).
    #[must_use]
    pub const fn is_message(self) -> bool {
        matches!(self, Self::Api | Self::WebSocket | Self::OpenAi)
    }

    /// Did a trigger, a schedule, a workflow, an A2A task, a hook, a chat or the world itself begin it? Then nobody waits for it but what began
    /// it, and it goes on after a restart wherever it runs.
    #[must_use]
    pub const fn is_fired(self) -> bool {
        match self {
            Self::Trigger { .. }
            | Self::Schedule { .. }
            | Self::Workflow { .. }
            | Self::A2a { .. }
            | Self::Dream { .. }
            | Self::Hook { .. }
            | Self::Channel { .. } => true,
            Self::Api | Self::WebSocket | Self::OpenAi | Self::Agent { .. } | Self::Peer => false,
        }
    }

    /// Does its turn go on in a hidden session after a restart? What waits for its answer, if anything, does too.
    #[must_use]
    pub const fn is_awaited_by_world(self) -> bool {
        self.is_fired() || matches!(self, Self::Agent { .. })
    }
}

/// The turn that waits for, or at least began, this one through `agent_send`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentLink {
    /// The turn whose model called `agent_send`.
    pub turn: TurnId,
    /// Whose turn that is.
    pub agent: AgentId,
    /// The session of that turn: a stop or interrupt there cascades to this turn.
    pub session: SessionId,
    /// The log row that waits for this turn's answer; `None` when nobody waits (`async`).
    pub index: Option<u32>,
    /// The session of the strangers that began all of it, where strangers did.
    #[serde(default, skip_serializing_if = "is_default")]
    pub began_in: Option<SessionId>,
}

/// What one request asks beside its message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnRequest {
    /// Added behind the agent's own system text.
    pub system: Option<String>,
    /// Sampling temperature instead of the manifest's.
    pub temperature: Option<f32>,
    /// Bound of an answer in tokens instead of the manifest's.
    pub max_tokens: Option<u32>,
    /// Tools of the client: offered to the model; a call of one ends the turn and goes to the client.
    pub tools: Vec<ClientTool>,
    /// Which tool the model should call, as JSON text in OpenAI's form.
    pub tool_choice: Option<String>,
    /// Whether a response can contain several tool calls.
    pub parallel_tool_calls: Option<bool>,
    /// More keys for the provider as they came, as the text of a JSON object.
    pub parameters: Option<Box<str>>,
    /// Asks for extended thinking where the model has it.
    pub thinking: bool,
    /// The user that it is for, in the words of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Box<str>>,
    /// The chat that its message comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<Box<ChatSource>>,
    /// The W3C `traceparent` of the request, where it brought one: its effects bear the trace id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Box<str>>,
    /// The model that answers instead of the agent's own: provider and id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Box<ModelName>>,
    /// Narrows what the turn is and may do; only what the world itself begins has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Box<TurnProfile>>,
    /// The session in which strangers began what fired the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_in: Option<SessionId>,
}

impl TurnRequest {
    /// The provider of the model that it asks for.
    #[must_use]
    pub fn provider(&self) -> Option<&str> {
        self.model.as_ref().map(|model| &*model.provider)
    }
}

/// A model by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelName {
    /// Its provider.
    pub provider: Box<str>,
    /// Its id.
    pub model: Box<str>,
}

impl ModelName {
    /// The choice of an agent, but for this model. An endpoint and a key belong to the provider that they were written for.
    #[must_use]
    pub fn chosen(&self, own: &ModelChoice) -> ModelChoice {
        let mut choice = own.clone();
        if choice.provider != self.provider {
            (choice.base_url, choice.api_key_env) = (None, None);
        }
        (choice.provider, choice.model) = (self.provider.clone(), self.model.clone());
        choice
    }
}

/// The chat that a message comes from, as the outside knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatSource {
    /// The kind of channel, such as `telegram`: what usage names as its channel.
    pub channel_type: Box<str>,
    /// The name of the instance.
    pub instance: Box<str>,
    /// The chat.
    pub chat: Box<str>,
    /// Who wrote the message.
    pub sender: Box<str>,
}

/// A tool that the client of a request runs itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientTool {
    /// Its name.
    pub name: Box<str>,
    /// What it does.
    pub description: Box<str>,
    /// The JSON schema of its input, as JSON text.
    pub input_schema: Box<str>,
    /// Whether the model must keep to the schema.
    pub strict: Option<bool>,
}

/// The state of one turn.
#[derive(Component, Clone, Debug)]
pub struct Turn {
    /// Whose turn.
    pub agent: Entity,
    /// In which session.
    pub session: Entity,
    /// Whose share of the open turns it takes. Not stored: a start asks whose agent it is.
    pub holder: Holder,
    /// The next turn in the session's inbox.
    pub next: Option<Entity>,
    /// When the message was taken.
    pub created_at: Timestamp,
    /// When the call that is out went out.
    pub called_at: Timestamp,
    /// Tokens of this turn's model calls so far.
    pub usage: Usage,
    /// What the request asked for beside its message.
    pub request: Option<Arc<TurnRequest>>,
    /// The turn that began this one through `agent_send`.
    pub link: Option<Box<ParentLink>>,
    /// What it did so far; made with the first step that another one follows.
    pub journal: Option<Box<Journal>>,
    /// The burst that it is stored in, as long as it waits unchanged; then it has no record of its own.
    pub burst: Option<BurstPlace>,
    /// Orders this turn's rows in the session's log.
    pub ordinal: u32,
    /// The index of the next row this turn writes; row 0 is the user's message.
    pub next_index: u32,
    /// Fences outcomes: one that carries another attempt is dropped.
    pub attempt: u32,
    /// Model calls so far.
    pub iteration: u32,
    /// Tool calls asked for so far in this turn.
    pub tool_calls: u32,
    /// Where it is.
    pub state: TurnState,
    /// Source of the message.
    pub origin: Origin,
    /// How many turns that fired, or that a message of an agent began, lie between it and what a person or the clock
    /// began, itself included; bounds cascades.
    pub depth: u8,
    /// Untrusted content it has read or began with. What its session holds counts too.
    pub taint: Taint,
    /// Someone reads the answer as it is written.
    pub streaming: bool,
    /// It ends at the next boundary between tool calls, interrupted.
    pub cancelled: bool,
    /// The tool calls without a result; empty unless `state` is `WaitingForTools` or
    /// `WaitingForApproval`.
    pub pending: Vec<PendingTool>,
}

/// Where in which burst ([`BurstRecord`](crate::trigger::record::BurstRecord)) a fired turn is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstPlace {
    /// The burst's number.
    pub number: u64,
    /// Which of its fires; less than [`BURST_FIRES_MAX`](crate::kernel::limit::BURST_FIRES_MAX).
    pub at: u8,
}

/// A tool call that has no result yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingTool {
    /// The index of the log row that its result goes to. With the turn's id it is the call's idempotency key.
    pub index: u32,
    /// The call as the model made it.
    pub call: ToolCall,
    /// Progress.
    #[serde(default)]
    pub state: PendingState,
    /// When it first went out.
    #[serde(default)]
    pub sent_at: Timestamp,
    /// How often it went out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub runs: u8,
}

/// How far a tool call without a result is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PendingState {
    /// It waits for a place among the tools that run.
    Waiting,
    /// It went out and may have begun.
    #[default]
    Out,
    /// The turn of another agent will answer it, or has answered: then this is the job that scans what it said.
    Adopted(TurnId),
    /// It waits for a person.
    Gated(ApprovalId),
}

/// What a turn did so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Journal {
    /// The model and tool calls that ended, in the order of their ends.
    pub steps: Vec<TraceStep>,
    /// What the loop guard remembers: one entry for each different tool call.
    pub guard: Vec<GuardEntry>,
    /// Notes to the owner (spec 1, Owner notice), in the order of their calls.
    pub notices: Vec<Box<str>>,
    /// The log row of the call that left each note.
    pub notice_rows: Vec<u32>,
    /// What the model said beside its last tool calls: the partial response, should the turn end here.
    pub said: Box<str>,
    /// Its message says something that rules would keep as a memory entry.
    #[serde(skip_serializing_if = "is_default")]
    pub states_facts: bool,
    /// What its model was given of the memory of its agent; `None` before the first call, and where nothing was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recalled: Option<Arc<Recalled>>,
    /// The prompt that it has in an experiment of its agent; `None` for the agent's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<TurnVariant>,
    /// What brought untrusted content in, in the order of its coming, such as `web_fetch https://example.org/`; at most
    /// [`TAINT_SOURCES_MAX`](crate::kernel::limit::TAINT_SOURCES_MAX).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tainted_by: Vec<Box<str>>,
}

/// What the loop guard knows of one tool call and its repetitions (spec 1, Limits, loop guard).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardEntry {
    /// Hash of the tool's name and canonical arguments.
    pub call: u64,
    /// How often it was asked for.
    pub calls: u32,
    /// Hash of its last result.
    pub result: u64,
    /// How often that result came back in a row.
    pub results: u32,
}
