//! The stored forms of workflows and their runs. What changes with every step of a run is small; what is long (its
//! plan, the outputs of its steps) has records of its own, each written once.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::kernel::holder::Holder;
use crate::kernel::id::{RunId, WorkflowId};
use crate::kernel::record::{is_default, record};
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;
use crate::workflow::{Caller, RunState, Step, StepRun};

/// One run, without its texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Also in the key.
    pub id: RunId,
    /// Of which workflow.
    pub workflow: WorkflowId,
    /// The workflow's name when the run began.
    pub name: Box<str>,
    /// The tool call that waits for it.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// The workflows in whose steps it was begun.
    #[serde(default)]
    pub above: Vec<WorkflowId>,
    /// Number of triggered turns between its steps and the first cause.
    #[serde(default)]
    pub depth: u8,
    /// Where it is.
    pub state: RunState,
    /// The first step that is not settled.
    pub at: u16,
    /// When it was taken.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default)]
    pub ended_at: Option<Timestamp>,
    /// Reason of the failure or cancellation.
    #[serde(default)]
    pub error: Option<Box<str>>,
    /// How far each step is.
    pub progress: Vec<StepRun>,
    /// What its conditions have cost.
    #[serde(default, skip_serializing_if = "is_default")]
    pub judged: u64,
    /// Untrusted content in its texts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint: Taint,
    /// The user that the turn was for that began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Box<str>>,
    /// Whose share of the runs it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

record!(RunRecord: b'n', RunId, id);

/// What a run was begun with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPlanRecord {
    /// The steps as they were then.
    pub steps: Arc<[Step]>,
    /// What it was given.
    pub input: Arc<str>,
}

/// A text of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunTextRecord {
    /// The text.
    pub text: Arc<str>,
}

/// Which part of a run a record holds; its number stands in the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunPart {
    /// What it was begun with.
    Plan,
    /// What the run gave.
    Output,
    /// What the last iteration of the loop under way was given, until its condition has been looked at.
    Given,
    /// What the step of this number gave.
    Step(u16),
}

impl RunPart {
    /// The number in the key.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Plan => 0,
            Self::Output => 1,
            Self::Given => u16::MAX,
            Self::Step(step) => step + 2,
        }
    }

    /// The part of this number.
    #[must_use]
    pub const fn of(number: u16) -> Self {
        match number {
            0 => Self::Plan,
            1 => Self::Output,
            u16::MAX => Self::Given,
            step => Self::Step(step - 2),
        }
    }
}
