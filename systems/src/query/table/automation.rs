//! Triggers, schedules and cron jobs.

use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, Past, Schedule};
use agentsvc_components::trigger::{FireLog, FireOutcome, Trigger, TriggerState};
use agentsvc_components::{AgentId, ScheduleId, TriggerId};

use super::agents::AGENTS;
use super::{Field, Item, Kind, Relation, Row, field, id_at};
use crate::query::source::Source;
use crate::query::value::{Type, Value};
use crate::{schedule, trigger};

pub(super) static TRIGGERS: Kind = Kind {
    name: "triggers",
    text: "Triggers, switched off or not.",
    fields: &TRIGGER_FIELDS,
    relations: &[
        Relation {
            name: "agent",
            to: &AGENTS,
            text: "Who owns it.",
            follow: |row| row.get::<Trigger>().map(|trigger| Item::Entity(trigger.agent)),
        },
        Relation {
            name: "target",
            to: &AGENTS,
            text: "Who gets the message instead of the owner.",
            follow: |row| row.get::<Trigger>()?.target.map(Item::Entity),
        },
    ],
    shown: &["id", "agent.name", "pattern", "enabled", "fired", "last_fired_at", "last_outcome"],
    source: Source::Triggers,
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
    field("id", Type::Id, "Its id.", |row| row.of(|id: &TriggerId| Value::Id(id.0))),
    field("agent_id", Type::Id, "Who owns it.", |row| {
        row.of(|trigger: &Trigger| id_at(row, trigger.agent, |id: AgentId| id.0))
    }),
    field("target_id", Type::Id, "Who gets the message instead of the owner.", |row| {
        row.of(|trigger: &Trigger| trigger.target.map_or(Value::Null, |target| id_at(row, target, |id: AgentId| id.0)))
    }),
    field("pattern", Type::Text, "What it waits for, as compact JSON.", |row| {
        row.of(|trigger: &Trigger| Value::Text(trigger::render_pattern(&trigger.pattern).to_string().into()))
    }),
    field("enabled", Type::Bool, "Is it switched on?", |row| row.of(|trigger: &Trigger| Value::Bool(trigger.enabled))),
    field("max_fires", Type::Number, "Fires it has in all; nothing is without bound.", |row| {
        row.of(|trigger: &Trigger| match trigger.max_fires {
            0 => Value::Null,
            most => Value::count(most),
        })
    }),
    field("cooldown", Type::Duration, "Time between two fires; nothing is the daemon's default.", |row| {
        row.of(|trigger: &Trigger| Value::maybe(trigger.cooldown_secs, |secs| Value::Duration(i64::from(secs) * 1_000)))
    }),
    field("created_at", Type::Time, "When it was made.", |row| {
        row.of(|trigger: &Trigger| Value::Time(trigger.created_at))
    }),
    field("fired", Type::Number, "Matches that began a turn.", |row| {
        log(row, |log| Value::count(log.outcomes.of(FireOutcome::Fired)))
    }),
    field("over_budget", Type::Number, "Matches for which there was no budget left.", |row| {
        log(row, |log| Value::count(log.outcomes.of(FireOutcome::OverBudget)))
    }),
    field("matched", Type::Number, "All matches.", |row| {
        log(row, |log| Value::count(FireOutcome::ALL.iter().map(|outcome| log.outcomes.of(*outcome)).sum()))
    }),
    field("last_fired_at", Type::Time, "The time of the event that it last fired for.", |row| {
        log(row, |log| Value::maybe(log.last_fired_at, Value::Time))
    }),
    field("last_matched_at", Type::Time, "The time of the event that it last matched.", |row| {
        log(row, |log| Value::maybe(log.last_matched_at, Value::Time))
    }),
    field("last_outcome", Type::Word(OUTCOMES), "How that match ended.", |row| {
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

pub(super) static SCHEDULES: Kind = Kind {
    name: "schedules",
    text: "Schedules.",
    fields: &SCHEDULE_FIELDS,
    relations: &SCHEDULE_RELATIONS,
    shown: &["id", "agent.name", "name", "rule", "enabled", "next_run", "last_run", "last_status"],
    source: Source::Schedules,
};

pub(super) static CRON_JOBS: Kind = Kind {
    name: "cron_jobs",
    text: "Cron jobs.",
    fields: &SCHEDULE_FIELDS,
    relations: &SCHEDULE_RELATIONS,
    shown: &["id", "agent.name", "name", "rule", "enabled", "next_run", "last_run", "last_status"],
    source: Source::CronJobs,
};

static SCHEDULE_RELATIONS: [Relation; 1] = [Relation {
    name: "agent",
    to: &AGENTS,
    text: "Whose turns it begins.",
    follow: |row| row.get::<Schedule>().map(|schedule| Item::Entity(schedule.agent)),
}];

const STATUSES: &[&str] =
    &["completed", "failed", "stopped", "missed", "overlapped", "refused", "agent_stopped", "over_budget"];

static SCHEDULE_FIELDS: [Field; 19] = [
    field("id", Type::Id, "Its id.", |row| row.of(|id: &ScheduleId| Value::Id(id.0))),
    field("agent_id", Type::Id, "Whose turns it begins.", |row| {
        row.of(|schedule: &Schedule| id_at(row, schedule.agent, |id: AgentId| id.0))
    }),
    field("name", Type::Text, "What it is called.", |row| {
        row.of(|schedule: &Schedule| Value::maybe(schedule.name.as_deref(), Value::text))
    }),
    field("rule", Type::Text, "Its rule as written.", |row| row.of(|schedule: &Schedule| Value::text(&schedule.rule))),
    field("timezone", Type::Text, "The zone whose clocks a cron expression is read by.", |row| {
        row.of(|schedule: &Schedule| Value::text(&schedule.timezone))
    }),
    field("enabled", Type::Bool, "Does it fire?", |row| row.of(|schedule: &Schedule| Value::Bool(schedule.enabled))),
    field("missed", Type::Word(&["skip", "one", "all"]), "What happens to slots that passed unnoticed.", |row| {
        row.of(|schedule: &Schedule| {
            Value::text(match schedule.missed {
                MissedPolicy::Skip => "skip",
                MissedPolicy::One => "one",
                MissedPolicy::All => "all",
            })
        })
    }),
    field(
        "overlap",
        Type::Word(&["skip", "queue", "parallel"]),
        "What happens to a slot while a turn is open.",
        |row| {
            row.of(|schedule: &Schedule| {
                Value::text(match schedule.overlap {
                    OverlapPolicy::Skip => "skip",
                    OverlapPolicy::Queue => "queue",
                    OverlapPolicy::Parallel => "parallel",
                })
            })
        },
    ),
    field("created_at", Type::Time, "When it was created.", |row| {
        row.of(|schedule: &Schedule| Value::Time(schedule.created_at))
    }),
    field("updated_at", Type::Time, "When its definition last changed.", |row| {
        row.of(|schedule: &Schedule| Value::Time(schedule.updated_at))
    }),
    field("next_run", Type::Time, "The next slot; nothing when it is disabled or has none left.", |row| {
        Value::maybe(row.entity().and_then(|entity| schedule::next_run(row.world, entity)), Value::Time)
    }),
    field("last_run", Type::Time, "The slot that fired last, or the moment of a later run by hand.", |row| {
        past(row, |past| Value::maybe(past.last_run, Value::Time))
    }),
    field("last_status", Type::Word(STATUSES), "What came of the last slot or run that has ended.", |row| {
        past(row, |past| Value::maybe(past.last_result.as_ref(), |last| Value::text(last.status.as_str())))
    }),
    field("runs", Type::Number, "Turns begun so far, runs by hand included.", |row| {
        past(row, |past| Value::count(past.run_count))
    }),
    field("open_turns", Type::Number, "Turns that it began and that have not ended.", |row| {
        Value::maybe(row.entity(), |entity| Value::count(schedule::open_turns(row.world, entity).into()))
    }),
    field("waiting", Type::Number, "Slots that wait for the open turn to end.", |row| {
        past(row, |past| Value::count(past.queue.len() as u64))
    }),
    field("fired", Type::Number, "Slots that began a turn.", |row| past(row, |past| Value::count(past.tally.fired))),
    field("completed", Type::Number, "Turns that gave an answer.", |row| {
        past(row, |past| Value::count(past.tally.completed))
    }),
    field("failed", Type::Number, "Turns that failed.", |row| past(row, |past| Value::count(past.tally.failed))),
];

/// What `read` makes of a schedule's past; of one that has none, what it makes of an empty one.
fn past<'w>(row: &Row<'w>, read: impl Fn(&Past) -> Value<'w>) -> Value<'w> {
    row.of(|schedule: &Schedule| match schedule.past.as_deref() {
        Some(past) => read(past),
        None => read(&Past::default()),
    })
}
