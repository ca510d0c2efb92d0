//! Workflows: pipelines of steps that agents carry out, and their runs (spec 1, Workflow, Workflow run). A workflow is
//! an entity with a [`WorkflowId`] and [`Workflow`]; a run is one with a [`RunId`](crate::RunId) and [`WorkflowRun`].

use crate::kernel::domain::Domain;
use crate::kernel::words::enum_words;
pub mod record;

use std::sync::Arc;

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::holder::Holder;
use crate::kernel::id::{AgentId, TurnId, WorkflowId};
use crate::kernel::record::stored;
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "workflow", uses: &[] };

enum_words! {
    /// Mode of a step.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum StepMode [ALL, as_str] {
        /// After the step before it.
        #[default]
        Sequential = "sequential",
        /// In parallel with adjacent steps of the same mode, on the same input.
        FanOut = "fan_out",
        /// Joins the outputs of the preceding fan_out steps, without an agent.
        Collect = "collect",
        /// Only if its condition is true.
        Conditional = "conditional",
        /// Repeatedly on its own output, until its condition is true.
        Loop = "loop",
    }
}

enum_words! {
    /// Error mode of a step.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ErrorMode [ALL, as_str] {
        /// The run fails.
        #[default]
        Fail = "fail",
        /// The run goes on as if the step were not there.
        Skip = "skip",
        /// The step is retried with backoff; then the run fails.
        Retry = "retry",
    }
}

/// Who carries a step out; looked up when the step begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepAgent {
    /// The agent with this id.
    Id(AgentId),
    /// The agent that bears this name then.
    Name(Box<str>),
}

/// One step of a workflow (spec 1, Workflow, step object).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// Its name.
    pub name: Box<str>,
    /// Who carries it out; `None` only where no agent is asked.
    pub agent: Option<StepAgent>,
    /// The message to the agent; a template.
    pub prompt: Box<str>,
    /// How it is carried out.
    pub mode: StepMode,
    /// Seconds that one attempt may take, 1 to 86,400.
    pub timeout_secs: u32,
    /// What its failure does.
    pub error_mode: ErrorMode,
    /// Attempts after the first one, for [`ErrorMode::Retry`].
    pub max_retries: u32,
    /// The variable that stores its output for later steps.
    pub output_var: Option<Box<str>>,
    /// When it runs, for [`StepMode::Conditional`].
    pub condition: Option<Box<str>>,
    /// How often it runs at most, for [`StepMode::Loop`].
    pub max_iterations: u32,
    /// When it has run enough, for [`StepMode::Loop`].
    pub until: Option<Box<str>>,
}

impl Step {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let agent = match &self.agent {
            Some(StepAgent::Name(name)) => name.len(),
            Some(StepAgent::Id(_)) | None => 0,
        };
        let others = [&self.output_var, &self.condition, &self.until].into_iter().flatten();
        self.name.len() + agent + self.prompt.len() + others.map(|text| text.len()).sum::<usize>()
    }
}

/// A workflow definition.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    /// Its name; several may bear the same.
    pub name: Box<str>,
    /// What it is for.
    pub description: Box<str>,
    /// Its steps; not empty.
    pub steps: Arc<[Step]>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
    /// Whose share of the workflows it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

stored!(Workflow: b'f', WorkflowId);

impl Workflow {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.name.len() + self.description.len() + self.steps.iter().map(Step::bytes).sum::<usize>()
    }
}

enum_words! {
    /// Where a run is. The table of transitions stands at the head of `systems/src/workflow/machine.rs`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum RunState [as_str] {
        /// Taken; its first step has not begun.
        #[default]
        Pending = "Pending",
        /// Under way.
        Running = "Running",
        /// At its end.
        Completed = "Completed",
        /// Ended by a step that failed.
        Failed = "Failed",
        /// Ended because someone wanted it so.
        Cancelled = "Cancelled",
    }
}

impl RunState {
    /// Is it still to go on?
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

enum_words! {
    /// Where one step of a run is.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum StepState [as_str] {
        /// It has not begun, or its next iteration has not.
        #[default]
        Pending = "Pending",
        /// Its agent is asked.
        Running = "Running",
        /// It failed and waits to be tried again.
        Retrying = "Retrying",
        /// It gave its output.
        Completed = "Completed",
        /// Its condition did not hold, or it failed and may be left out.
        Skipped = "Skipped",
        /// It failed.
        Failed = "Failed",
        /// The run ended before it could.
        Cancelled = "Cancelled",
    }
}

impl StepState {
    /// Is it past its end?
    #[must_use]
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Completed | Self::Skipped | Self::Failed | Self::Cancelled)
    }
}

/// State of a step of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepRun {
    /// Where it is.
    pub state: StepState,
    /// The turn that carries it out, while it is [`Running`](StepState::Running).
    pub turn: Option<TurnId>,
    /// Attempts over all iterations.
    pub attempts: u32,
    /// Attempts of this iteration that failed.
    pub failures: u32,
    /// Completed iterations.
    pub iterations: u32,
    /// When its first attempt began.
    pub started_at: Option<Timestamp>,
    /// When it was settled.
    pub ended_at: Option<Timestamp>,
    /// While it is running: when it has run out of time. While it is retrying: when it is tried again.
    pub due: Option<Timestamp>,
    /// Reason of the last failure.
    pub error: Option<Box<str>>,
}

/// The tool call that a run answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Caller {
    /// The turn whose model called `workflow_run`.
    pub turn: TurnId,
    /// The log row of the call; with the turn it names the run.
    pub index: u32,
}

/// A run of a workflow. It keeps the steps as they were when it began.
#[derive(Component, Clone, Debug)]
pub struct WorkflowRun {
    /// Of which workflow.
    pub workflow: WorkflowId,
    /// The workflow's name when the run began.
    pub name: Box<str>,
    /// Its steps. Of an ended run without prompts.
    pub steps: Arc<[Step]>,
    /// What it was given. Of an ended run its beginning.
    pub input: Arc<str>,
    /// The tool call that waits for it; `None` when a person began it.
    pub caller: Option<Caller>,
    /// The workflows in whose steps it was begun, outermost first.
    pub above: Vec<WorkflowId>,
    /// Number of triggered turns between its steps and the first cause.
    pub depth: u8,
    /// Where it is.
    pub state: RunState,
    /// The first step that is not settled.
    pub at: u16,
    /// When it was taken.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Reason of the failure or cancellation.
    pub error: Option<Box<str>>,
    /// How far each step is.
    pub progress: Vec<StepRun>,
    /// What each step gave.
    pub outputs: Vec<Option<Arc<str>>>,
    /// What the last iteration of the loop under way was given, where the condition that ends it asks for that and has not
    /// been looked at.
    pub given: Option<Arc<str>>,
    /// What its conditions have cost: bytes that they looked at, weighted.
    pub judged: u64,
    /// What the run gave, when it is completed.
    pub output: Option<Arc<str>>,
    /// Untrusted content that stands in its input and outputs.
    pub taint: Taint,
    /// The user that the turn was for that began it, where the client named one: its turns are for that user, too.
    pub user: Option<Box<str>>,
    /// Whose share of the runs it takes.
    pub holder: Option<Holder>,
}
