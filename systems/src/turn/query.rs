//! What queries see of open turns and of the providers that they ask.

use agentsvc_components::turn::{Origin, Turn, TurnState};
use agentsvc_components::{AgentId, SessionId, Timestamp, TurnId};

use crate::agent::query::{AGENTS, BY_AGENT, named};
use crate::agent::session_table::SESSIONS;
use crate::config::Settings;
use crate::kernel::expr::{Type, Value};
use crate::kernel::index::{self, Index};
use crate::kernel::table::{Cursor, Field, Item, Kind, Lookup, Relation, Row, Source, field, id_at, span};
use crate::model::admission::Admission;

pub(crate) static TURNS: Kind = Kind {
    name: "turns",
    text: "Open turns, including queued ones.",
    fields: &TURN_FIELDS,
    relations: &[
        Relation {
            name: "agent",
            to: &AGENTS,
            text: "Agent.",
            follow: |row| row.get::<Turn>().map(|turn| Item::Entity(turn.agent)),
        },
        Relation {
            name: "session",
            to: &SESSIONS,
            text: "Session.",
            follow: |row| row.get::<Turn>().map(|turn| Item::Entity(turn.session)),
        },
    ],
    shown: &["id", "agent.name", "state", "origin", "age", "iterations", "tool_calls", "tokens"],
    source: Source {
        by_id: Some(|world, id| index::turn(world, TurnId(id))),
        lookups: &[Lookup {
            fields: BY_AGENT,
            rows: |page, agent| {
                let Some((_, agent)) = named(page.world, agent) else { return Cursor::End };
                let after = if let Cursor::AfterEntity(_, turn) = page.cursor { Some(turn) } else { None };
                let found = page.world.resource::<Index>().turns_of_after(agent, after);
                page.walk(found.map(|turn| (turn, Item::Entity(turn))), |turn| Cursor::AfterEntity(agent, turn))
            },
        }],
        ..Source::of(|page| {
            let after = if let Cursor::AfterEntity(agent, turn) = page.cursor { Some((agent, turn)) } else { None };
            let found = page.world.resource::<Index>().turns_after(after);
            page.walk(found.map(|key| (key, Item::Entity(key.1))), |(agent, turn)| Cursor::AfterEntity(agent, turn))
        })
    },
};

const ORIGINS: &[&str] = &["api", "websocket", "openai", "agent", "trigger", "schedule", "workflow", "a2a", "hook"];
const STATES: &[&str] = &["Queued", "Reserving", "Calling", "WaitingForTools", "WaitingForApproval", "Stopping"];

const fn state_of(state: TurnState) -> &'static str {
    match state {
        TurnState::Queued => "Queued",
        TurnState::Reserving => "Reserving",
        TurnState::Calling => "Calling",
        TurnState::WaitingForTools => "WaitingForTools",
        TurnState::WaitingForApproval => "WaitingForApproval",
        TurnState::Stopping => "Stopping",
    }
}

const TURN_FIELDS: [Field; 24] = [
    field("id", Type::Id, "Unique id.", |row| row.of(|id: &TurnId| Value::Id(id.0))),
    field("agent_id", Type::Id, "Agent.", |row| row.of(|turn: &Turn| id_at(row, turn.agent, |id: AgentId| id.0))),
    field("session_id", Type::Id, "Session.", |row| {
        row.of(|turn: &Turn| id_at(row, turn.session, |id: SessionId| id.0))
    }),
    field("state", Type::Word(STATES), "State.", |row| row.of(|turn: &Turn| Value::text(state_of(turn.state)))),
    field("origin", Type::Word(ORIGINS), "Source of the message.", |row| {
        row.of(|turn: &Turn| Value::text(turn.origin.as_str()))
    }),
    field("created_at", Type::Time, "Time at which the message was received.", |row| {
        row.of(|turn: &Turn| Value::Time(turn.created_at))
    }),
    field("age", Type::Duration, "Time since the message was received.", |row| {
        row.of(|turn: &Turn| span(turn.created_at, row.now()))
    }),
    field("called_at", Type::Time, "Start of the active model call.", |row| {
        row.of(|turn: &Turn| match turn.state {
            TurnState::Calling if turn.called_at > Timestamp(0) => Value::Time(turn.called_at),
            _ => Value::Null,
        })
    }),
    field("iterations", Type::Number, "Model calls so far.", |row| {
        row.of(|turn: &Turn| Value::count(turn.iteration.into()))
    }),
    field("tool_calls", Type::Number, "Tool calls so far.", |row| {
        row.of(|turn: &Turn| Value::count(turn.tool_calls.into()))
    }),
    field("tools_pending", Type::Number, "Tool calls without a result.", |row| {
        row.of(|turn: &Turn| Value::count(turn.pending.len() as u64))
    }),
    field("input_tokens", Type::Number, "Prompt tokens so far.", |row| {
        row.of(|turn: &Turn| Value::count(turn.usage.input_tokens))
    }),
    field("output_tokens", Type::Number, "Output tokens so far.", |row| {
        row.of(|turn: &Turn| Value::count(turn.usage.output_tokens))
    }),
    field("tokens", Type::Number, "Prompt and output tokens so far.", |row| {
        row.of(|turn: &Turn| Value::count(turn.usage.input_tokens.saturating_add(turn.usage.output_tokens)))
    }),
    field("cost_usd", Type::Number, "Cost of its model calls so far, in dollars.", |row| {
        row.of(|turn: &Turn| Value::Number(turn.usage.cost.usd()))
    }),
    field(
        "depth",
        Type::Number,
        "Number of turns of triggers and of messages of agents between this one and its first cause, itself included.",
        |row| row.of(|turn: &Turn| Value::count(turn.depth.into())),
    ),
    field("streaming", Type::Bool, "Whether a client streams the response.", |row| {
        row.of(|turn: &Turn| Value::Bool(turn.streaming))
    }),
    field("cancelled", Type::Bool, "Whether it stops at the next tool call.", |row| {
        row.of(|turn: &Turn| Value::Bool(turn.cancelled))
    }),
    field("tainted", Type::Bool, "Whether it has read untrusted content.", |row| {
        row.of(|turn: &Turn| Value::Bool(!turn.taint.is_none()))
    }),
    field("trigger_id", Type::Id, "Trigger that started it.", |row| {
        origin(row, |origin| if let Origin::Trigger { trigger } = origin { Some(trigger.0) } else { None })
    }),
    field("schedule_id", Type::Id, "Schedule or cron job that started it.", |row| {
        origin(row, |origin| if let Origin::Schedule { schedule } = origin { Some(schedule.0) } else { None })
    }),
    field("run_id", Type::Id, "Workflow run that started it.", |row| {
        origin(row, |origin| if let Origin::Workflow { run, .. } = origin { Some(run.0) } else { None })
    }),
    field("parent_turn_id", Type::Id, "Turn of another agent that started it.", |row| {
        origin(row, |origin| if let Origin::Agent { parent } = origin { Some(parent.0) } else { None })
    }),
    field("attempt", Type::Number, "Effects started so far.", |row| {
        row.of(|turn: &Turn| Value::count(turn.attempt.into()))
    }),
];

fn origin<'w>(row: &Row<'w>, id: impl FnOnce(Origin) -> Option<uuid::Uuid>) -> Value<'w> {
    row.of(|turn: &Turn| Value::maybe(id(turn.origin), Value::Id))
}

pub(crate) static PROVIDERS: Kind = Kind {
    name: "providers",
    text: "Model providers with active calls or waiting turns.",
    fields: &PROVIDER_FIELDS,
    relations: &[],
    shown: &["name", "calls_out", "calls_max"],
    source: Source::of(|page| {
        // Few: as many as the configuration has.
        for name in page.world.resource::<Admission>().providers() {
            (page.visit)(Item::Text(name));
        }
        Cursor::End
    }),
};

const PROVIDER_FIELDS: [Field; 4] = [
    field("name", Type::Text, "Name.", |row| provider(row, Value::text)),
    field("calls_out", Type::Number, "Active model calls.", |row| {
        provider(row, |name| Value::count(row.world.resource::<Admission>().lane_of(name).0.into()))
    }),
    field("calls_max", Type::Number, "Limit of concurrent model calls.", |row| {
        provider(row, |name| Value::count(row.world.resource::<Settings>().calls_max(name).into()))
    }),
    field("agents_waiting", Type::Number, "Agents with turns waiting for a slot.", |row| {
        provider(row, |name| Value::count(row.world.resource::<Admission>().lane_of(name).1 as u64))
    }),
];

fn provider<'w>(row: &Row<'w>, read: impl FnOnce(&'w str) -> Value<'w>) -> Value<'w> {
    match row.item {
        Item::Text(name) => read(name),
        _ => Value::Null,
    }
}
