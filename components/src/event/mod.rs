//! What happened in the world: the one vocabulary of events. Triggers, webhooks, audit and the log read these.
//!
//! The JSON form of an event is one object with `kind` and the fields below; ids are called `agent_id`, `turn_id` and
//! so on. It is what `{{event}}` of a trigger's template stands for (spec 1, Trigger event kinds).

use crate::kernel::domain::Domain;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::kernel::holder::Holder;
use crate::kernel::id::{AgentId, RunId, ScheduleId, SessionId, TaskId, TurnId, WorkflowId};
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;
use crate::session::message::Usage;

mod kind;
mod of;

pub use kind::EventKind;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "event", uses: &["session"] };

/// Something that happened, when, and how far from a person's doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventEnvelope {
    /// What.
    pub event: Event,
    /// When, in world time.
    pub at: Timestamp,
    /// How many fired turns lie between it and what a person or the clock began: 0 for their own doing.
    pub depth: u8,
    /// Untrusted content behind it.
    pub taint: Taint,
    /// The session in which strangers began what it comes from, where they did and that is known.
    pub began_in: Option<SessionId>,
    /// Whose share of what waits for it it takes: that of its agent, or else of whoever acted.
    pub holder: Option<Holder>,
}

/// Something that happened, in the past tense.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// An agent was created.
    AgentSpawned {
        /// Which.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// Its name.
        name: String,
        /// The turn that spawned it, if one did.
        #[serde(rename = "by_turn_id", skip_serializing_if = "Option::is_none")]
        by: Option<TurnId>,
    },
    /// A stopped agent takes messages again.
    AgentStarted {
        /// Which.
        #[serde(rename = "agent_id")]
        agent: AgentId,
    },
    /// An agent takes no more messages.
    AgentStopped {
        /// Which.
        #[serde(rename = "agent_id")]
        agent: AgentId,
    },
    /// An agent's manifest, mode or identity changed.
    AgentUpdated {
        /// Which.
        #[serde(rename = "agent_id")]
        agent: AgentId,
    },
    /// An agent was removed.
    AgentTerminated {
        /// Which.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// The name it had.
        name: String,
        /// The turn that did it, if one did.
        #[serde(rename = "by_turn_id", skip_serializing_if = "Option::is_none")]
        by: Option<TurnId>,
    },
    /// A message was taken for a session.
    MessageReceived {
        /// Whose.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// In which session.
        #[serde(rename = "session_id")]
        session: SessionId,
        /// The turn that will answer.
        #[serde(rename = "turn_id")]
        turn: TurnId,
        /// What it says, cut to [`EVENT_TEXT_BYTES_MAX`](crate::kernel::limit::EVENT_TEXT_BYTES_MAX). Turns that one event
        /// fires share it.
        text: Arc<str>,
    },
    /// A turn asked its model for the first time.
    TurnStarted {
        /// Whose.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// Which.
        #[serde(rename = "turn_id")]
        turn: TurnId,
    },
    /// A turn gave its answer.
    TurnCompleted {
        /// Whose.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// Which.
        #[serde(rename = "turn_id")]
        turn: TurnId,
        /// Tokens of the whole turn.
        usage: Usage,
        /// Model calls.
        iterations: u32,
        /// The answer, cut as the text of a message.
        text: Box<str>,
    },
    /// A turn ended without an answer.
    TurnFailed {
        /// Whose.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// Which.
        #[serde(rename = "turn_id")]
        turn: TurnId,
        /// A stable word, such as `provider_timeout` or `turn_stopped`.
        code: String,
        /// One sentence.
        error: String,
    },
    /// The older messages of a session were replaced by a summary.
    SessionCompacted {
        /// Whose.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// Which session.
        #[serde(rename = "session_id")]
        session: SessionId,
        /// Messages before.
        messages_before: u32,
        /// Messages after, the summary included.
        messages_after: u32,
    },
    /// A turn's tool call came back.
    ToolCalled {
        /// Whose.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// Which turn.
        #[serde(rename = "turn_id")]
        turn: TurnId,
        /// The tool's name.
        tool: String,
        /// Did it fail?
        is_error: bool,
    },
    /// The loop guard refused a turn's tool call.
    ToolRefused {
        /// Whose.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// Which turn.
        #[serde(rename = "turn_id")]
        turn: TurnId,
        /// The tool's name.
        tool: String,
        /// It was the circuit breaker: the turn ends.
        breaker: bool,
    },
    /// A tool call ran when the daemon died, and must not run twice: nobody knows whether it took effect.
    ToolUnknown {
        /// Whose.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// Which turn.
        #[serde(rename = "turn_id")]
        turn: TurnId,
        /// The tool's name.
        tool: String,
        /// The log row of the call.
        index: u32,
    },
    /// A task was put in the queue.
    TaskPosted {
        /// Which.
        #[serde(rename = "task_id")]
        task: TaskId,
        /// What is to be done, in a line.
        title: String,
        /// The whole of it, cut as the text of a message.
        description: Box<str>,
        /// Whom it is for: an agent's id or name, as it was given; `None` is nobody.
        #[serde(skip_serializing_if = "Option::is_none")]
        assignee: Option<String>,
        /// The live agent that `assignee` names.
        #[serde(skip_serializing_if = "Option::is_none")]
        assignee_id: Option<AgentId>,
        /// The turn that posted it, if one did.
        #[serde(rename = "by_turn_id", skip_serializing_if = "Option::is_none")]
        by: Option<TurnId>,
    },
    /// An agent took a task.
    TaskClaimed {
        /// Which.
        #[serde(rename = "task_id")]
        task: TaskId,
        /// What is to be done.
        title: String,
        /// Who took it.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// The turn that took it, if one did.
        #[serde(rename = "by_turn_id", skip_serializing_if = "Option::is_none")]
        by: Option<TurnId>,
    },
    /// A task is done.
    TaskCompleted {
        /// Which.
        #[serde(rename = "task_id")]
        task: TaskId,
        /// What was to be done.
        title: String,
        /// Who had it.
        #[serde(rename = "agent_id", skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        /// What came of it, cut as the text of a message.
        result: Box<str>,
        /// The turn that ended it, if one did.
        #[serde(rename = "by_turn_id", skip_serializing_if = "Option::is_none")]
        by: Option<TurnId>,
    },
    /// A task was given up.
    TaskFailed {
        /// Which.
        #[serde(rename = "task_id")]
        task: TaskId,
        /// What was to be done.
        title: String,
        /// Who had it.
        #[serde(rename = "agent_id", skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        /// Why, cut as the text of a message.
        error: Box<str>,
        /// The turn that ended it, if one did.
        #[serde(rename = "by_turn_id", skip_serializing_if = "Option::is_none")]
        by: Option<TurnId>,
    },
    /// A slot of a schedule made its agent act.
    ScheduleFired {
        /// Which.
        #[serde(rename = "schedule_id")]
        schedule: ScheduleId,
        /// Agent.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// The slot's nominal time; `None` when it was run by hand.
        #[serde(skip_serializing_if = "Option::is_none")]
        slot: Option<Box<str>>,
        /// The turn that it began.
        #[serde(rename = "turn_id")]
        turn: TurnId,
    },
    /// A slot of a cron job made its agent act.
    CronFired {
        /// Which.
        #[serde(rename = "job_id")]
        job: ScheduleId,
        /// The job's name.
        name: String,
        /// Agent.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// The slot's nominal time; `None` when it was run by hand.
        #[serde(skip_serializing_if = "Option::is_none")]
        slot: Option<Box<str>>,
        /// The turn that it began.
        #[serde(rename = "turn_id")]
        turn: TurnId,
    },
    /// A run of a workflow began.
    WorkflowStarted {
        /// Which workflow.
        #[serde(rename = "workflow_id")]
        workflow: WorkflowId,
        /// Which run.
        #[serde(rename = "run_id")]
        run: RunId,
        /// The workflow's name.
        name: String,
        /// The turn that began it, if one did.
        #[serde(rename = "by_turn_id", skip_serializing_if = "Option::is_none")]
        by: Option<TurnId>,
    },
    /// A run of a workflow came to its end.
    WorkflowCompleted {
        /// Which workflow.
        #[serde(rename = "workflow_id")]
        workflow: WorkflowId,
        /// Which run.
        #[serde(rename = "run_id")]
        run: RunId,
        /// The workflow's name.
        name: String,
        /// What came of it, cut as the text of a message.
        output: Box<str>,
        /// The turn that began it, if one did.
        #[serde(rename = "by_turn_id", skip_serializing_if = "Option::is_none")]
        by: Option<TurnId>,
    },
    /// A run of a workflow failed or was cancelled.
    WorkflowFailed {
        /// Which workflow.
        #[serde(rename = "workflow_id")]
        workflow: WorkflowId,
        /// Which run.
        #[serde(rename = "run_id")]
        run: RunId,
        /// The workflow's name.
        name: String,
        /// Why.
        error: String,
        /// The turn that began it, if one did.
        #[serde(rename = "by_turn_id", skip_serializing_if = "Option::is_none")]
        by: Option<TurnId>,
    },
    /// A tool call waits for a person's approval.
    ApprovalRequested {
        /// Which.
        #[serde(rename = "approval_id")]
        approval: Uuid,
        /// Whose call.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// Of which turn.
        #[serde(rename = "turn_id", skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
        /// Which tool.
        tool: String,
    },
    /// An approval was given, refused or expired.
    ApprovalResolved {
        /// Which.
        #[serde(rename = "approval_id")]
        approval: Uuid,
        /// Whose call.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// Of which turn.
        #[serde(rename = "turn_id", skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
        /// `approved`, `rejected` or `expired`.
        decision: String,
    },
    /// Most of a budget is spent.
    BudgetWarning {
        /// `global` or an agent's id.
        scope: String,
        /// `hourly`, `daily` or `monthly`.
        period: String,
        /// Whose budget; `None` is everybody's.
        #[serde(rename = "agent_id", skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
    },
    /// A budget is spent.
    BudgetExceeded {
        /// `global` or an agent's id.
        scope: String,
        /// `hourly`, `daily` or `monthly`.
        period: String,
        /// Whose budget; `None` is everybody's.
        #[serde(rename = "agent_id", skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
    },
    /// An entry of an agent's memory was written or deleted.
    MemoryUpdated {
        /// Whose.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// The entry's key.
        key: Box<str>,
        /// It was deleted.
        deleted: bool,
        /// The turn that did it, if one did.
        #[serde(rename = "by_turn_id", skip_serializing_if = "Option::is_none")]
        by: Option<TurnId>,
    },
    /// Entities and relations of an agent's knowledge were written or deleted.
    KnowledgeUpdated {
        /// Whose.
        #[serde(rename = "agent_id")]
        agent: AgentId,
        /// Entities that were written.
        entities: u32,
        /// Relations that were written.
        relations: u32,
        /// Entities and relations that were deleted.
        deleted: u32,
        /// The turn that did it, if one did.
        #[serde(rename = "by_turn_id", skip_serializing_if = "Option::is_none")]
        by: Option<TurnId>,
    },
    /// Something that an agent or a client published.
    Custom {
        /// What kind of thing, in the publisher's words.
        event_type: String,
        /// The agent that published it.
        #[serde(rename = "agent_id", skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        /// Any JSON.
        payload: Box<str>,
        /// The turn that published it, if one did.
        #[serde(rename = "by_turn_id", skip_serializing_if = "Option::is_none")]
        by: Option<TurnId>,
    },
}
