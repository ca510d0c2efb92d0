//! What queries see of schedules and cron jobs.

use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, Past, Schedule, ScheduleKind};
use agentsvc_components::{AgentId, ScheduleId};

use super::Schedules;
use crate::agent::query::{AGENTS, BY_AGENT, named};
use crate::kernel::expr::{Type, Value};
use crate::kernel::table::{Cursor, Field, Item, Kind, Lookup, Page, Relation, Row, Source, field, id_at};

/// The source of schedules, or of cron jobs.
macro_rules! source {
    ($kind:expr) => {
        Source {
            by_id: Some(|world, id| world.resource::<Schedules>().get($kind, ScheduleId(id))),
            lookups: &[Lookup {
                fields: BY_AGENT,
                rows: |page, agent| {
                    let Some((_, agent)) = named(page.world, agent) else { return Cursor::End };
                    let found = page.world.resource::<Schedules>().of(agent, $kind, page.after().map(ScheduleId));
                    schedules(page, $kind, found)
                },
            }],
            ..Source::of(|page| {
                let found = page.world.resource::<Schedules>().after($kind, page.after().map(ScheduleId));
                schedules(page, $kind, found)
            })
        }
    };
}

fn schedules<'w>(page: &mut Page<'_, 'w>, kind: ScheduleKind, found: impl Iterator<Item = ScheduleId> + 'w) -> Cursor {
    let schedules = page.world.resource::<Schedules>();
    page.entities(found.filter_map(|id| Some((id.0, schedules.get(kind, id)?))))
}

pub(crate) static SCHEDULES: Kind = Kind {
    name: "schedules",
    text: "Schedules.",
    fields: &SCHEDULE_FIELDS,
    relations: &SCHEDULE_RELATIONS,
    shown: &["id", "agent.name", "name", "rule", "enabled", "next_run", "last_run", "last_status"],
    source: source!(ScheduleKind::Schedule),
};

pub(crate) static CRON_JOBS: Kind = Kind {
    name: "cron_jobs",
    text: "Cron jobs.",
    fields: &SCHEDULE_FIELDS,
    relations: &SCHEDULE_RELATIONS,
    shown: &["id", "agent.name", "name", "rule", "enabled", "next_run", "last_run", "last_status"],
    source: source!(ScheduleKind::Cron),
};

static SCHEDULE_RELATIONS: [Relation; 1] = [Relation {
    name: "agent",
    to: &AGENTS,
    text: "Agent that receives the prompt.",
    follow: |row| row.get::<Schedule>().map(|schedule| Item::Entity(schedule.agent)),
}];

const STATUSES: &[&str] =
    &["completed", "failed", "stopped", "missed", "overlapped", "refused", "agent_stopped", "over_budget"];

static SCHEDULE_FIELDS: [Field; 19] = [
    field("id", Type::Id, "Unique id.", |row| row.of(|id: &ScheduleId| Value::Id(id.0))),
    field("agent_id", Type::Id, "Agent that receives the prompt.", |row| {
        row.of(|schedule: &Schedule| id_at(row, schedule.agent, |id: AgentId| id.0))
    }),
    field("name", Type::Text, "Name.", |row| {
        row.of(|schedule: &Schedule| Value::maybe(schedule.name.as_deref(), Value::text))
    }),
    field("rule", Type::Text, "Rule as written.", |row| row.of(|schedule: &Schedule| Value::text(&schedule.rule))),
    field("timezone", Type::Text, "Time zone of the cron expression.", |row| {
        row.of(|schedule: &Schedule| Value::text(&schedule.timezone))
    }),
    field("enabled", Type::Bool, "Whether it is enabled.", |row| {
        row.of(|schedule: &Schedule| Value::Bool(schedule.enabled))
    }),
    field("missed", Type::Word(&["skip", "one", "all"]), "Missed policy.", |row| {
        row.of(|schedule: &Schedule| {
            Value::text(match schedule.missed {
                MissedPolicy::Skip => "skip",
                MissedPolicy::One => "one",
                MissedPolicy::All => "all",
            })
        })
    }),
    field("overlap", Type::Word(&["skip", "queue", "parallel"]), "Overlap policy.", |row| {
        row.of(|schedule: &Schedule| {
            Value::text(match schedule.overlap {
                OverlapPolicy::Skip => "skip",
                OverlapPolicy::Queue => "queue",
                OverlapPolicy::Parallel => "parallel",
            })
        })
    }),
    field("created_at", Type::Time, "Creation time.", |row| {
        row.of(|schedule: &Schedule| Value::Time(schedule.created_at))
    }),
    field("updated_at", Type::Time, "Time of the last change to its definition.", |row| {
        row.of(|schedule: &Schedule| Value::Time(schedule.updated_at))
    }),
    field("next_run", Type::Time, "Next slot; null if it is disabled or has none left.", |row| {
        Value::maybe(row.entity().and_then(|entity| super::next_run(row.world, entity)), Value::Time)
    }),
    field("last_run", Type::Time, "Slot that fired last, or the time of a later manual run.", |row| {
        past(row, |past| Value::maybe(past.last_run, Value::Time))
    }),
    field("last_status", Type::Word(STATUSES), "Outcome of the last slot or run that has ended.", |row| {
        past(row, |past| Value::maybe(past.last_result.as_ref(), |last| Value::text(last.status.as_str())))
    }),
    field("runs", Type::Number, "Turns started so far, including manual runs.", |row| {
        past(row, |past| Value::count(past.run_count))
    }),
    field("open_turns", Type::Number, "Turns that have not ended.", |row| {
        Value::maybe(row.entity(), |entity| Value::count(super::open_turns(row.world, entity).into()))
    }),
    field("waiting", Type::Number, "Slots waiting for the open turn to end.", |row| {
        past(row, |past| Value::count(past.queue.len() as u64))
    }),
    field("fired", Type::Number, "Slots that started a turn.", |row| past(row, |past| Value::count(past.tally.fired))),
    field("completed", Type::Number, "Completed turns.", |row| past(row, |past| Value::count(past.tally.completed))),
    field("failed", Type::Number, "Failed turns.", |row| past(row, |past| Value::count(past.tally.failed))),
];

/// What `read` makes of a schedule's past; of one that has none, what it makes of an empty one.
fn past<'w>(row: &Row<'w>, read: impl Fn(&Past) -> Value<'w>) -> Value<'w> {
    row.of(|schedule: &Schedule| match schedule.past.as_deref() {
        Some(past) => read(past),
        None => read(&Past::default()),
    })
}
