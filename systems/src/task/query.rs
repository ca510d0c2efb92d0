//! What queries see of tasks.

use agentsvc_components::TaskId;
use agentsvc_components::task::Task;

use super::Tasks;
use crate::agent::query::{self, AGENTS};
use crate::kernel::expr::{Type, Value};
use crate::kernel::table::{Field, Kind, Relation, Source, field, span};

pub(crate) static TASKS: Kind = Kind {
    name: "tasks",
    text: "Tasks, open and ended.",
    fields: &TASK_FIELDS,
    relations: &[Relation {
        name: "claimed",
        to: &AGENTS,
        text: "The agent that has claimed it.",
        follow: |row| query::row_of(row, row.get::<Task>()?.claimed_by),
    }],
    shown: &["id", "title", "state", "assignee", "claimed.name", "attempts", "updated_at"],
    source: Source {
        by_id: Some(|world, id| world.resource::<Tasks>().get(TaskId(id))),
        ..Source::of(|page| {
            let found = page.world.resource::<Tasks>().after(page.after().map(TaskId));
            page.entities(found.map(|(id, task)| (id.0, task)))
        })
    },
};

const TASK_FIELDS: [Field; 13] = [
    field("id", Type::Id, "Unique id.", |row| row.of(|id: &TaskId| Value::Id(id.0))),
    field("title", Type::Text, "Title.", |row| row.of(|task: &Task| Value::text(&task.title))),
    field("state", Type::Word(&["pending", "running", "completed", "failed", "cancelled"]), "State.", |row| {
        row.of(|task: &Task| Value::text(task.state.as_str()))
    }),
    field("assignee", Type::Text, "Assignee as given; null means any agent.", |row| {
        row.of(|task: &Task| Value::maybe(task.owner(), Value::text))
    }),
    field("claimed_by", Type::Id, "Agent that claimed it.", |row| {
        row.of(|task: &Task| Value::maybe(task.claimed_by, |id| Value::Id(id.0)))
    }),
    field("posted_by", Type::Id, "Agent that posted it; null if a client did.", |row| {
        row.of(|task: &Task| Value::maybe(task.posted_by, |id| Value::Id(id.0)))
    }),
    field("attempts", Type::Number, "Number of claims.", |row| {
        row.of(|task: &Task| Value::count(task.attempts.into()))
    }),
    field("created_at", Type::Time, "Creation time.", |row| row.of(|task: &Task| Value::Time(task.created_at))),
    field("updated_at", Type::Time, "Time of the last change.", |row| {
        row.of(|task: &Task| Value::Time(task.updated_at))
    }),
    field("claimed_at", Type::Time, "Time of the claim.", |row| {
        row.of(|task: &Task| Value::maybe(task.claimed_at, Value::Time))
    }),
    field("ended_at", Type::Time, "End time.", |row| row.of(|task: &Task| Value::maybe(task.ended_at, Value::Time))),
    field("age", Type::Duration, "Time since it was posted.", |row| {
        row.of(|task: &Task| span(task.created_at, row.now()))
    }),
    field("tainted", Type::Bool, "Whether its text came from turns that had read untrusted content.", |row| {
        row.of(|task: &Task| Value::Bool(!task.taint.is_none()))
    }),
];
