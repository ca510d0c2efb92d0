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
        text: "Whose.",
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
            let goals = page.world.resource::<Goals>();
            let found = goals.all(page.after().map(GoalId));
            page.entities(found.filter_map(|id| Some((id.0, goals.get(id)?))))
        })
    },
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
