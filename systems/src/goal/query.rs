//! What queries see of goals.

use agentsvc_components::GoalId;
use agentsvc_components::goal::Goal;

use super::Goals;
use crate::agent::query::{self, AGENTS, BY_AGENT, named};
use crate::kernel::expr::{Type, Value};
use crate::kernel::table::{Cursor, Field, Kind, Lookup, Relation, Source, field};

pub(crate) static GOALS: Kind = Kind {
    name: "goals",
    text: "Goals.",
    fields: &GOAL_FIELDS,
    relations: &[Relation {
        name: "agent",
        to: &AGENTS,
        text: "Agent.",
        follow: |row| query::row_of(row, row.get::<Goal>()?.agent),
    }],
    shown: &["id", "title", "status", "agent.name", "due_at", "updated_at"],
    source: Source {
        by_id: Some(|world, id| world.resource::<Goals>().get(GoalId(id))),
        lookups: &[Lookup {
            fields: BY_AGENT,
            rows: |page, agent| {
                let Some((agent, _)) = named(page.world, agent) else { return Cursor::End };
                let goals = page.world.resource::<Goals>();
                let found = goals.of_agent(Some(agent), page.after().map(GoalId));
                page.entities(found.filter_map(|id| Some((id.0, goals.get(id)?))))
            },
        }],
        ..Source::of(|page| {
            let found = page.world.resource::<Goals>().after(page.after().map(GoalId));
            page.entities(found.map(|(id, goal)| (id.0, goal)))
        })
    },
};

const GOAL_FIELDS: [Field; 11] = [
    field("id", Type::Id, "Unique id.", |row| row.of(|id: &GoalId| Value::Id(id.0))),
    field("title", Type::Text, "Title.", |row| row.of(|goal: &Goal| Value::text(&goal.title))),
    field("note", Type::Text, "Latest note.", |row| row.of(|goal: &Goal| Value::text(&goal.note))),
    field("status", Type::Word(&["pending", "in_progress", "completed", "cancelled"]), "Status.", |row| {
        row.of(|goal: &Goal| Value::text(goal.status.as_str()))
    }),
    field("open", Type::Bool, "Whether it is pending or in progress.", |row| {
        row.of(|goal: &Goal| Value::Bool(goal.status.is_open()))
    }),
    field("agent_id", Type::Id, "Agent.", |row| row.of(|goal: &Goal| Value::maybe(goal.agent, |id| Value::Id(id.0)))),
    field("parent_id", Type::Id, "Parent goal.", |row| {
        row.of(|goal: &Goal| Value::maybe(goal.parent, |id| Value::Id(id.0)))
    }),
    field("due_at", Type::Time, "Due date.", |row| row.of(|goal: &Goal| Value::maybe(goal.due_at, Value::Time))),
    field("created_at", Type::Time, "Creation time.", |row| row.of(|goal: &Goal| Value::Time(goal.created_at))),
    field("updated_at", Type::Time, "Time of the last change.", |row| {
        row.of(|goal: &Goal| Value::Time(goal.updated_at))
    }),
    field("completed_at", Type::Time, "Completion time.", |row| {
        row.of(|goal: &Goal| Value::maybe(goal.completed_at, Value::Time))
    }),
];
