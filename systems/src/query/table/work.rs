//! Goals, tasks, workflows and their runs, approvals and compactions.

use agentsvc_components::approval::Approval;
use agentsvc_components::compaction::{Compaction, CompactionState};
use agentsvc_components::goal::Goal;
use agentsvc_components::task::Task;
use agentsvc_components::workflow::{Workflow, WorkflowRun};
use agentsvc_components::{AgentId, ApprovalId, CompactionId, GoalId, RunId, SessionId, TaskId, WorkflowId};

use super::agents::{AGENTS, SESSIONS};
use super::{Field, Item, Kind, Relation, Row, field, id_at, span};
use crate::kernel::index;
use crate::query::source::Source;
use crate::query::value::{Type, Value};
use crate::workflow;

/// The agent `id` as a row.
fn agent<'w>(row: &Row<'w>, id: Option<AgentId>) -> Option<Item<'w>> {
    index::agent(row.world, id?).ok().map(Item::Entity)
}

pub(super) static GOALS: Kind = Kind {
    name: "goals",
    text: "Goals.",
    fields: &GOAL_FIELDS,
    relations: &[Relation {
        name: "agent",
        to: &AGENTS,
        text: "Whose.",
        follow: |row| agent(row, row.get::<Goal>()?.agent),
    }],
    shown: &["id", "title", "status", "agent.name", "due_at", "updated_at"],
    source: Source::Goals,
};

const GOAL_FIELDS: [Field; 11] = [
    field("id", Type::Id, "Its id.", |row| row.of(|id: &GoalId| Value::Id(id.0))),
    field("title", Type::Text, "What is to be reached.", |row| row.of(|goal: &Goal| Value::text(&goal.title))),
    field("note", Type::Text, "The last word of whoever works on it.", |row| {
        row.of(|goal: &Goal| Value::text(&goal.note))
    }),
    field("status", Type::Word(&["pending", "in_progress", "completed", "cancelled"]), "How far it is.", |row| {
        row.of(|goal: &Goal| Value::text(goal.status.as_str()))
    }),
    field("open", Type::Bool, "There is still something to do.", |row| {
        row.of(|goal: &Goal| Value::Bool(goal.status.is_open()))
    }),
    field("agent_id", Type::Id, "Whose.", |row| row.of(|goal: &Goal| Value::maybe(goal.agent, |id| Value::Id(id.0)))),
    field("parent_id", Type::Id, "The goal that it is a part of.", |row| {
        row.of(|goal: &Goal| Value::maybe(goal.parent, |id| Value::Id(id.0)))
    }),
    field("due_at", Type::Time, "When it should be reached.", |row| {
        row.of(|goal: &Goal| Value::maybe(goal.due_at, Value::Time))
    }),
    field("created_at", Type::Time, "When it was set.", |row| row.of(|goal: &Goal| Value::Time(goal.created_at))),
    field("updated_at", Type::Time, "When it last changed.", |row| row.of(|goal: &Goal| Value::Time(goal.updated_at))),
    field("completed_at", Type::Time, "When it was reached.", |row| {
        row.of(|goal: &Goal| Value::maybe(goal.completed_at, Value::Time))
    }),
];

pub(super) static TASKS: Kind = Kind {
    name: "tasks",
    text: "Tasks of the queue, open and ended ones.",
    fields: &TASK_FIELDS,
    relations: &[Relation {
        name: "claimed",
        to: &AGENTS,
        text: "The agent that has claimed it.",
        follow: |row| agent(row, row.get::<Task>()?.claimed_by),
    }],
    shown: &["id", "title", "state", "assignee", "claimed.name", "attempts", "updated_at"],
    source: Source::Tasks,
};

const TASK_FIELDS: [Field; 13] = [
    field("id", Type::Id, "Its id.", |row| row.of(|id: &TaskId| Value::Id(id.0))),
    field("title", Type::Text, "What is to be done.", |row| row.of(|task: &Task| Value::text(&task.title))),
    field("state", Type::Word(&["pending", "running", "completed", "failed", "cancelled"]), "Where it is.", |row| {
        row.of(|task: &Task| Value::text(task.state.as_str()))
    }),
    field("assignee", Type::Text, "Who is to do it, as it was given; nothing is whoever comes first.", |row| {
        row.of(|task: &Task| Value::maybe(task.owner(), Value::text))
    }),
    field("claimed_by", Type::Id, "The agent that has claimed it, or ended it.", |row| {
        row.of(|task: &Task| Value::maybe(task.claimed_by, |id| Value::Id(id.0)))
    }),
    field("posted_by", Type::Id, "The agent that posted it; nothing when a person did.", |row| {
        row.of(|task: &Task| Value::maybe(task.posted_by, |id| Value::Id(id.0)))
    }),
    field("attempts", Type::Number, "How often it was claimed.", |row| {
        row.of(|task: &Task| Value::count(task.attempts.into()))
    }),
    field("created_at", Type::Time, "When it was posted.", |row| row.of(|task: &Task| Value::Time(task.created_at))),
    field("updated_at", Type::Time, "When it last changed.", |row| row.of(|task: &Task| Value::Time(task.updated_at))),
    field("claimed_at", Type::Time, "When it was claimed.", |row| {
        row.of(|task: &Task| Value::maybe(task.claimed_at, Value::Time))
    }),
    field("ended_at", Type::Time, "When it was done or failed.", |row| {
        row.of(|task: &Task| Value::maybe(task.ended_at, Value::Time))
    }),
    field("age", Type::Duration, "Time since it was posted.", |row| {
        row.of(|task: &Task| span(task.created_at, row.now()))
    }),
    field("tainted", Type::Bool, "Its texts were written by turns that had read untrusted content.", |row| {
        row.of(|task: &Task| Value::Bool(!task.taint.is_none()))
    }),
];

pub(super) static WORKFLOWS: Kind = Kind {
    name: "workflows",
    text: "Workflow definitions.",
    fields: &WORKFLOW_FIELDS,
    relations: &[],
    shown: &["id", "name", "steps", "updated_at"],
    source: Source::Workflows,
};

const WORKFLOW_FIELDS: [Field; 6] = [
    field("id", Type::Id, "Its id.", |row| row.of(|id: &WorkflowId| Value::Id(id.0))),
    field("name", Type::Text, "Its name.", |row| row.of(|workflow: &Workflow| Value::text(&workflow.name))),
    field("description", Type::Text, "What it is for.", |row| {
        row.of(|workflow: &Workflow| Value::text(&workflow.description))
    }),
    field("steps", Type::Number, "How many steps it has.", |row| {
        row.of(|workflow: &Workflow| Value::count(workflow.steps.len() as u64))
    }),
    field("created_at", Type::Time, "When it was made.", |row| {
        row.of(|workflow: &Workflow| Value::Time(workflow.created_at))
    }),
    field("updated_at", Type::Time, "When it was changed last.", |row| {
        row.of(|workflow: &Workflow| Value::Time(workflow.updated_at))
    }),
];

pub(super) static RUNS: Kind = Kind {
    name: "runs",
    text: "Runs of workflows, under way and ended ones.",
    fields: &RUN_FIELDS,
    relations: &[Relation {
        name: "workflow",
        to: &WORKFLOWS,
        text: "Of which workflow.",
        follow: |row| workflow::entity_of(row.world, row.get::<WorkflowRun>()?.workflow).map(Item::Entity),
    }],
    shown: &["id", "name", "state", "step", "steps", "started_at", "duration", "error"],
    source: Source::Runs,
};

const RUN_STATES: &[&str] = &["Pending", "Running", "Completed", "Failed", "Cancelled"];

const RUN_FIELDS: [Field; 13] = [
    field("id", Type::Id, "Its id.", |row| row.of(|id: &RunId| Value::Id(id.0))),
    field("workflow_id", Type::Id, "Of which workflow.", |row| row.of(|run: &WorkflowRun| Value::Id(run.workflow.0))),
    field("name", Type::Text, "The workflow's name when it began.", |row| {
        row.of(|run: &WorkflowRun| Value::text(&run.name))
    }),
    field("state", Type::Word(RUN_STATES), "Where it is.", |row| {
        row.of(|run: &WorkflowRun| Value::text(run.state.as_str()))
    }),
    field("open", Type::Bool, "It is still to go on.", |row| {
        row.of(|run: &WorkflowRun| Value::Bool(run.state.is_open()))
    }),
    field("step", Type::Number, "The first step that is not settled, counted from 0.", |row| {
        row.of(|run: &WorkflowRun| Value::count(run.at.into()))
    }),
    field("steps", Type::Number, "How many steps it has.", |row| {
        row.of(|run: &WorkflowRun| Value::count(run.steps.len() as u64))
    }),
    field("started_at", Type::Time, "When it was taken.", |row| {
        row.of(|run: &WorkflowRun| Value::Time(run.started_at))
    }),
    field("ended_at", Type::Time, "When it ended.", |row| {
        row.of(|run: &WorkflowRun| Value::maybe(run.ended_at, Value::Time))
    }),
    field("duration", Type::Duration, "Time that it took, or has taken so far.", |row| {
        row.of(|run: &WorkflowRun| span(run.started_at, run.ended_at.unwrap_or_else(|| row.now())))
    }),
    field("error", Type::Text, "Why it failed, or was cancelled.", |row| {
        row.of(|run: &WorkflowRun| Value::maybe(run.error.as_deref(), Value::text))
    }),
    field("depth", Type::Number, "Fired turns between its steps and what a person or the clock began.", |row| {
        row.of(|run: &WorkflowRun| Value::count(run.depth.into()))
    }),
    field("tainted", Type::Bool, "Untrusted content stands in its input and outputs.", |row| {
        row.of(|run: &WorkflowRun| Value::Bool(!run.taint.is_none()))
    }),
];

pub(super) static APPROVALS: Kind = Kind {
    name: "approvals",
    text: "Approvals, pending and decided ones; without their payloads.",
    fields: &APPROVAL_FIELDS,
    relations: &[Relation {
        name: "agent",
        to: &AGENTS,
        text: "Who asks.",
        follow: |row| agent(row, Some(row.get::<Approval>()?.agent)),
    }],
    shown: &["id", "agent.name", "action", "state", "created_at", "deadline"],
    source: Source::Approvals,
};

const APPROVAL_FIELDS: [Field; 9] = [
    field("id", Type::Id, "Its id.", |row| row.of(|id: &ApprovalId| Value::Id(id.0))),
    field("agent_id", Type::Id, "Who asks.", |row| row.of(|approval: &Approval| Value::Id(approval.agent.0))),
    field("action", Type::Text, "What is to be done: the tool's name of a tool call.", |row| {
        row.of(|approval: &Approval| Value::text(&approval.action))
    }),
    field("state", Type::Word(&["pending", "approved", "rejected", "expired"]), "Where it is.", |row| {
        row.of(|approval: &Approval| Value::text(approval.state.as_str()))
    }),
    field("created_at", Type::Time, "When it was asked for.", |row| {
        row.of(|approval: &Approval| Value::Time(approval.created_at))
    }),
    field("deadline", Type::Time, "When it expires.", |row| {
        row.of(|approval: &Approval| Value::Time(approval.deadline))
    }),
    field("decided_at", Type::Time, "When it was decided, or expired.", |row| {
        row.of(|approval: &Approval| Value::maybe(approval.decided_at, Value::Time))
    }),
    field("reason", Type::Text, "What the person said to it, or why it expired.", |row| {
        row.of(|approval: &Approval| Value::maybe(approval.reason.as_deref(), Value::text))
    }),
    field("turn_id", Type::Id, "The turn that waits for it.", |row| {
        row.of(|approval: &Approval| {
            Value::maybe(approval.call.and_then(|call| call.waiting_turn()), |turn| Value::Id(turn.0))
        })
    }),
];

pub(super) static COMPACTIONS: Kind = Kind {
    name: "compactions",
    text: "Sessions that are being summarised.",
    fields: &COMPACTION_FIELDS,
    relations: &[
        Relation {
            name: "agent",
            to: &AGENTS,
            text: "Whose session.",
            follow: |row| row.get::<Compaction>().map(|compaction| Item::Entity(compaction.agent)),
        },
        Relation {
            name: "session",
            to: &SESSIONS,
            text: "Which session.",
            follow: |row| row.get::<Compaction>().map(|compaction| Item::Entity(compaction.session)),
        },
    ],
    shown: &["id", "agent.name", "session_id", "state", "from_turn", "upto_turn"],
    source: Source::Compactions,
};

const COMPACTION_FIELDS: [Field; 6] = [
    field("id", Type::Id, "Its id.", |row| row.of(|id: &CompactionId| Value::Id(id.0))),
    field("agent_id", Type::Id, "Whose session.", |row| {
        row.of(|compaction: &Compaction| id_at(row, compaction.agent, |id: AgentId| id.0))
    }),
    field("session_id", Type::Id, "Which session.", |row| {
        row.of(|compaction: &Compaction| id_at(row, compaction.session, |id: SessionId| id.0))
    }),
    field("state", Type::Word(&["reserving", "calling"]), "Where it is.", |row| {
        row.of(|compaction: &Compaction| {
            Value::text(match compaction.state {
                CompactionState::Reserving => "reserving",
                CompactionState::Calling => "calling",
            })
        })
    }),
    field("from_turn", Type::Number, "The first turn that is summarised.", |row| {
        row.of(|compaction: &Compaction| Value::count(compaction.from.into()))
    }),
    field("upto_turn", Type::Number, "The first turn behind those that are summarised.", |row| {
        row.of(|compaction: &Compaction| Value::count(compaction.upto.into()))
    }),
];
