//! `goal_update`: an agent says how far one of its goals is, or sets itself a new one.

use agentsvc_components::goal::GoalStatus;
use agentsvc_components::{GoalId, Timestamp};
use agentsvc_systems::goal::{CreateGoal, GoalPatch, GoalView, UpdateGoal};
use chrono::DateTime;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// The table row. Safe to repeat: the world changes the goal and settles the call in one step.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "goal_update",
    "Updates one of your own goals: its status, a progress note, title, description or due date. Without `goal_id` \
     it creates a new goal; with `parent_id` a subgoal of one of your goals.",
    |context, text| on_input(context, text, run),
)
.safe()
.order(26);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The goal to update. Default: create a new goal.
    goal_id: Option<Uuid>,
    /// Progress.
    status: Option<Status>,
    /// Progress note, at most 1 KiB; replaces the previous one.
    note: Option<String>,
    /// Title: one line of at most 256 bytes; required for a new goal.
    title: Option<String>,
    /// Description, at most 8 KiB.
    description: Option<String>,
    /// Due date, such as 2026-12-01T09:00:00Z.
    due_at: Option<String>,
    /// Parent of a new goal: one of your own goals.
    parent_id: Option<Uuid>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

impl From<Status> for GoalStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::InProgress => Self::InProgress,
            Status::Completed => Self::Completed,
            Status::Cancelled => Self::Cancelled,
        }
    }
}

async fn run(context: Context, input: Input) -> Result<Ended, String> {
    let due_at = input.due_at.as_deref().map(moment).transpose()?;
    match input.goal_id {
        Some(goal) => context.settle(change(&context, GoalId(goal), input, due_at)?, told).await,
        None => context.settle(new(&context, input, due_at)?, told).await,
    }
}

fn change(context: &Context, goal: GoalId, input: Input, due_at: Option<Timestamp>) -> Result<UpdateGoal, String> {
    let Input { status, note, title, description, parent_id, .. } = input;
    if parent_id.is_some() {
        return Err("`parent_id` is only allowed for a new goal.".to_owned());
    }
    let status = status.map(Into::into);
    let patch = GoalPatch { title, description, note, status, due_at: due_at.map(Some), ..GoalPatch::default() };
    Ok(UpdateGoal { goal, patch, only_of: Some(context.run.agent) })
}

fn new(context: &Context, input: Input, due_at: Option<Timestamp>) -> Result<CreateGoal, String> {
    let Input { status, note, title, description, parent_id, .. } = input;
    Ok(CreateGoal {
        title: title.ok_or("Give `goal_id` to update a goal, or `title` to create one.")?,
        description: description.unwrap_or_default(),
        agent: Some(context.run.agent),
        parent: parent_id.map(GoalId),
        status: status.map(Into::into).unwrap_or_default(),
        due_at,
        note: note.unwrap_or_default(),
        only_below_own: true,
    })
}

fn moment(text: &str) -> Result<Timestamp, String> {
    let wrong =
        |_| "`due_at` is not a valid timestamp; expected RFC 3339, for example 2026-12-01T09:00:00Z.".to_owned();
    DateTime::parse_from_rfc3339(text).map(|at| Timestamp(at.timestamp_millis())).map_err(wrong)
}

fn told(view: &GoalView) -> String {
    let goal = &view.goal;
    let due_at = goal.due_at.map(|at| at.to_string());
    json!({ "goal_id": view.id, "title": goal.title, "status": goal.status.as_str(), "due_at": due_at }).to_string()
}
