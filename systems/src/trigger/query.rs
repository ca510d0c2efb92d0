//! What queries see of triggers.

use agentsvc_components::trigger::{FireLog, FireOutcome, Trigger, TriggerState};
use agentsvc_components::{AgentId, TriggerId};

use super::Triggers;
use crate::agent::query::{AGENTS, BY_AGENT, named};
use crate::kernel::expr::{Type, Value};
use crate::kernel::table::{Cursor, Field, Item, Kind, Lookup, Relation, Row, Source, field, id_at};

pub(crate) static TRIGGERS: Kind = Kind {
    name: "triggers",
    text: "Triggers, enabled or not.",
    fields: &TRIGGER_FIELDS,
    relations: &[
        Relation {
            name: "agent",
            to: &AGENTS,
            text: "Agent that owns it.",
            follow: |row| row.get::<Trigger>().map(|trigger| Item::Entity(trigger.agent)),
        },
        Relation {
            name: "target",
            to: &AGENTS,
            text: "Agent that receives the message instead of the owner.",
            follow: |row| row.get::<Trigger>()?.target.map(Item::Entity),
        },
    ],
    shown: &["id", "agent.name", "pattern", "enabled", "fired", "last_fired_at", "last_outcome"],
    source: Source {
        by_id: Some(|world, id| world.resource::<Triggers>().get(TriggerId(id))),
        lookups: &[Lookup {
            fields: BY_AGENT,
            rows: |page, agent| {
                let Some((_, agent)) = named(page.world, agent) else { return Cursor::End };
                let found = page.world.resource::<Triggers>().of_owner(agent, page.after().map(TriggerId));
                page.entities(found.map(|(id, trigger)| (id.0, trigger)))
            },
        }],
        ..Source::of(|page| {
            let found = page.world.resource::<Triggers>().after(page.after().map(TriggerId));
            page.entities(found.map(|(id, trigger)| (id.0, trigger)))
        })
    },
};

const OUTCOMES: &[&str] = &[
    "fired",
    "cooling_down",
    "exhausted",
    "disabled",
    "agent_stopped",
    "refused",
    "too_deep",
    "rate_limited",
    "over_budget",
];

const TRIGGER_FIELDS: [Field; 14] = [
    field("id", Type::Id, "Unique id.", |row| row.of(|id: &TriggerId| Value::Id(id.0))),
    field("agent_id", Type::Id, "Agent that owns it.", |row| {
        row.of(|trigger: &Trigger| id_at(row, trigger.agent, |id: AgentId| id.0))
    }),
    field("target_id", Type::Id, "Agent that receives the message instead of the owner.", |row| {
        row.of(|trigger: &Trigger| trigger.target.map_or(Value::Null, |target| id_at(row, target, |id: AgentId| id.0)))
    }),
    field("pattern", Type::Text, "Event pattern, as compact JSON.", |row| {
        row.of(|trigger: &Trigger| Value::Text(crate::event::render_pattern(&trigger.pattern).to_string().into()))
    }),
    field("enabled", Type::Bool, "Whether it is enabled.", |row| {
        row.of(|trigger: &Trigger| Value::Bool(trigger.enabled))
    }),
    field("max_fires", Type::Number, "Maximum number of fires; null means unlimited.", |row| {
        row.of(|trigger: &Trigger| match trigger.max_fires {
            0 => Value::Null,
            most => Value::count(most),
        })
    }),
    field("cooldown", Type::Duration, "Minimum time between two fires; null means the daemon's default.", |row| {
        row.of(|trigger: &Trigger| Value::maybe(trigger.cooldown_secs, |secs| Value::Duration(i64::from(secs) * 1_000)))
    }),
    field("created_at", Type::Time, "Creation time.", |row| {
        row.of(|trigger: &Trigger| Value::Time(trigger.created_at))
    }),
    field("fired", Type::Number, "Matches that started a turn.", |row| {
        log(row, |log| Value::count(log.outcomes.of(FireOutcome::Fired)))
    }),
    field("over_budget", Type::Number, "Matches refused because a budget was exhausted.", |row| {
        log(row, |log| Value::count(log.outcomes.of(FireOutcome::OverBudget)))
    }),
    field("matched", Type::Number, "All matches.", |row| {
        log(row, |log| Value::count(FireOutcome::ALL.iter().map(|outcome| log.outcomes.of(*outcome)).sum()))
    }),
    field("last_fired_at", Type::Time, "Time of the event that last fired it.", |row| {
        log(row, |log| Value::maybe(log.last_fired_at, Value::Time))
    }),
    field("last_matched_at", Type::Time, "Time of the event that it last matched.", |row| {
        log(row, |log| Value::maybe(log.last_matched_at, Value::Time))
    }),
    field("last_outcome", Type::Word(OUTCOMES), "Outcome of the last match.", |row| {
        log(row, |log| Value::maybe(log.last_outcome, |outcome| Value::text(outcome.as_str())))
    }),
];

/// What `read` makes of a trigger's log; of one that has done nothing yet, what it makes of an empty one.
fn log<'w>(row: &Row<'w>, read: impl Fn(&FireLog) -> Value<'w>) -> Value<'w> {
    row.of(|state: &TriggerState| match state.0.as_deref() {
        Some(log) => read(log),
        None => read(&FireLog::default()),
    })
}
