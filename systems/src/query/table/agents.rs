//! Agents, their sessions and their turns.

use agentsvc_components::agent::{Agent, AgentMode, SpawnedBy};
use agentsvc_components::session::Session;
use agentsvc_components::turn::{Origin, Turn, TurnState};
use agentsvc_components::usage::{Period, Scope};
use agentsvc_components::{AgentId, Micros, SessionId, Timestamp, TurnId};

use super::{Field, Item, Kind, Relation, Row, field, id_at, span};
use crate::config::Settings;
use crate::query::source::Source;
use crate::query::value::{Type, Value};
use crate::usage::Rollups;

pub(super) static AGENTS: Kind = Kind {
    name: "agents",
    text: "Live agents.",
    fields: &AGENT_FIELDS,
    relations: &[Relation {
        name: "parent",
        to: &AGENTS,
        text: "The agent that spawned it.",
        follow: |row| {
            let parent = row.get::<SpawnedBy>()?.0;
            crate::kernel::index::agent(row.world, parent).ok().map(Item::Entity)
        },
    }],
    shown: &["name", "state", "model", "tokens", "cost_usd", "updated_at", "id"],
    source: Source::Agents,
};

const AGENT_FIELDS: [Field; 19] = [
    field("id", Type::Id, "Its id.", |row| row.of(|id: &AgentId| Value::Id(id.0))),
    field("name", Type::Text, "Its name.", |row| row.of(|agent: &Agent| Value::text(&agent.name))),
    field("state", Type::Word(&["Running", "Stopped", "Crashed", "Terminated"]), "Where it is in its life.", |row| {
        row.of(|agent: &Agent| Value::text(agent.state.as_str()))
    }),
    field("mode", Type::Word(&["Normal", "Stable"]), "Does it follow changes of the daemon?", |row| {
        row.of(|agent: &Agent| {
            Value::text(match agent.mode {
                AgentMode::Normal => "Normal",
                AgentMode::Stable => "Stable",
            })
        })
    }),
    field("provider", Type::Text, "The provider that it asks.", |row| {
        row.of(|agent: &Agent| {
            Value::text(row.world.resource::<Settings>().provider_of(&agent.manifest.manifest.model))
        })
    }),
    field("model", Type::Text, "The model that it asks.", |row| {
        row.of(|agent: &Agent| Value::text(row.world.resource::<Settings>().model_of(&agent.manifest.manifest.model)))
    }),
    field("description", Type::Text, "What its manifest says about it.", |row| {
        row.of(|agent: &Agent| Value::text(&agent.manifest.manifest.description))
    }),
    field("tags", Type::Text, "The tags of its manifest, with commas between.", |row| {
        row.of(|agent: &Agent| row.joined(&agent.manifest.manifest.tags))
    }),
    field("created_at", Type::Time, "When it was spawned.", |row| {
        row.of(|agent: &Agent| Value::Time(agent.created_at))
    }),
    field("updated_at", Type::Time, "When its manifest, mode, state or current session last changed.", |row| {
        row.of(|agent: &Agent| Value::Time(agent.updated_at))
    }),
    field("input_tokens", Type::Number, "Tokens of its prompts so far.", |row| {
        row.of(|agent: &Agent| Value::count(agent.input_tokens))
    }),
    field("output_tokens", Type::Number, "Tokens of its answers so far.", |row| {
        row.of(|agent: &Agent| Value::count(agent.output_tokens))
    }),
    field("tokens", Type::Number, "Tokens of its prompts and answers so far.", |row| {
        row.of(|agent: &Agent| Value::count(agent.input_tokens.saturating_add(agent.output_tokens)))
    }),
    field("cost_usd", Type::Number, "Dollars that its model calls cost so far.", |row| cost(row, None)),
    field("today_usd", Type::Number, "Dollars that they cost today (UTC).", |row| cost(row, Some(Period::Daily))),
    field("open_turns", Type::Number, "Its open turns, of which at most 100 are counted.", |row| {
        let index = row.world.resource::<crate::kernel::index::Index>();
        Value::maybe(row.entity(), |entity| Value::count(index.turns_of(entity).take(100).count() as u64))
    }),
    field("parent_id", Type::Id, "The agent that spawned it.", |row| row.of(|by: &SpawnedBy| Value::Id(by.0.0))),
    field("session_id", Type::Id, "Its current session.", |row| {
        row.of(|agent: &Agent| id_at(row, agent.current, |id: SessionId| id.0))
    }),
    field("tainted", Type::Bool, "Its instructions or its files hold untrusted content.", |row| {
        row.of(|agent: &Agent| Value::Bool(!agent.taint.own.is_none() || !agent.taint.files.is_none()))
    }),
];

/// What an agent's calls cost: so far, or in the period that is now.
fn cost<'w>(row: &Row<'w>, period: Option<Period>) -> Value<'w> {
    row.of(|id: &AgentId| {
        let (rollups, scope) = (row.world.resource::<Rollups>(), Scope::Agent(*id));
        let cost = match period {
            None => rollups.total(scope).cost,
            Some(period) => Micros(rollups.spent(scope, period, row.now()).spent),
        };
        Value::Number(cost.usd())
    })
}

pub(super) static SESSIONS: Kind = Kind {
    name: "sessions",
    text: "Sessions, without those that were made for one request.",
    fields: &SESSION_FIELDS,
    relations: &[Relation {
        name: "agent",
        to: &AGENTS,
        text: "Whose.",
        follow: |row| row.get::<Session>().map(|session| Item::Entity(session.agent)),
    }],
    shown: &["id", "agent.name", "label", "messages", "queued", "updated_at"],
    source: Source::Sessions,
};

const SESSION_FIELDS: [Field; 11] = [
    field("id", Type::Id, "Its id.", |row| row.of(|id: &SessionId| Value::Id(id.0))),
    field("agent_id", Type::Id, "Whose.", |row| {
        row.of(|session: &Session| id_at(row, session.agent, |id: AgentId| id.0))
    }),
    field("label", Type::Text, "The name that a user gave it.", |row| {
        row.of(|session: &Session| Value::maybe(session.label.as_deref(), |label| Value::text(label)))
    }),
    field("created_at", Type::Time, "When it was created.", |row| {
        row.of(|session: &Session| Value::Time(session.created_at))
    }),
    field("updated_at", Type::Time, "When it last took a message, an answer or a label.", |row| {
        row.of(|session: &Session| Value::Time(session.updated_at))
    }),
    field("messages", Type::Number, "User messages and answers so far.", |row| {
        row.of(|session: &Session| Value::count(session.message_count.into()))
    }),
    field("queued", Type::Number, "Turns in its inbox, the running one included.", |row| {
        row.of(|session: &Session| Value::count(session.queued.into()))
    }),
    field("busy", Type::Bool, "A turn of it is open.", |row| {
        row.of(|session: &Session| Value::Bool(session.head.is_some()))
    }),
    field("interrupted", Type::Bool, "Its running turn was interrupted.", |row| {
        row.of(|session: &Session| Value::Bool(session.interrupted))
    }),
    field("compacted", Type::Number, "Turns that are summarised.", |row| {
        row.of(|session: &Session| Value::count(session.compacted.into()))
    }),
    field("tainted", Type::Bool, "Its history holds untrusted content.", |row| {
        row.of(|session: &Session| Value::Bool(!session.taint.is_none()))
    }),
];

pub(super) static TURNS: Kind = Kind {
    name: "turns",
    text: "Open turns, those that wait in an inbox included.",
    fields: &TURN_FIELDS,
    relations: &[
        Relation {
            name: "agent",
            to: &AGENTS,
            text: "Whose.",
            follow: |row| row.get::<Turn>().map(|turn| Item::Entity(turn.agent)),
        },
        Relation {
            name: "session",
            to: &SESSIONS,
            text: "In which session.",
            follow: |row| row.get::<Turn>().map(|turn| Item::Entity(turn.session)),
        },
    ],
    shown: &["id", "agent.name", "state", "origin", "age", "iterations", "tool_calls", "tokens"],
    source: Source::Turns,
};

const ORIGINS: &[&str] = &["api", "websocket", "openai", "agent", "trigger", "schedule", "workflow"];
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
    field("id", Type::Id, "Its id.", |row| row.of(|id: &TurnId| Value::Id(id.0))),
    field("agent_id", Type::Id, "Whose.", |row| row.of(|turn: &Turn| id_at(row, turn.agent, |id: AgentId| id.0))),
    field("session_id", Type::Id, "In which session.", |row| {
        row.of(|turn: &Turn| id_at(row, turn.session, |id: SessionId| id.0))
    }),
    field("state", Type::Word(STATES), "Where it is.", |row| row.of(|turn: &Turn| Value::text(state_of(turn.state)))),
    field("origin", Type::Word(ORIGINS), "Where its message came from.", |row| {
        row.of(|turn: &Turn| Value::text(turn.origin.as_str()))
    }),
    field("created_at", Type::Time, "When its message was taken.", |row| {
        row.of(|turn: &Turn| Value::Time(turn.created_at))
    }),
    field("age", Type::Duration, "Time since then.", |row| row.of(|turn: &Turn| span(turn.created_at, row.now()))),
    field("called_at", Type::Time, "When the model call that is out went out.", |row| {
        row.of(|turn: &Turn| match turn.state {
            TurnState::Calling if turn.called_at > Timestamp(0) => Value::Time(turn.called_at),
            _ => Value::Null,
        })
    }),
    field("iterations", Type::Number, "Model calls begun so far.", |row| {
        row.of(|turn: &Turn| Value::count(turn.iteration.into()))
    }),
    field("tool_calls", Type::Number, "Tool calls asked for so far.", |row| {
        row.of(|turn: &Turn| Value::count(turn.tool_calls.into()))
    }),
    field("tools_pending", Type::Number, "Tool calls without a result.", |row| {
        row.of(|turn: &Turn| Value::count(turn.pending.len() as u64))
    }),
    field("input_tokens", Type::Number, "Tokens of its prompts so far.", |row| {
        row.of(|turn: &Turn| Value::count(turn.usage.input_tokens))
    }),
    field("output_tokens", Type::Number, "Tokens of its answers so far.", |row| {
        row.of(|turn: &Turn| Value::count(turn.usage.output_tokens))
    }),
    field("tokens", Type::Number, "Tokens of both so far.", |row| {
        row.of(|turn: &Turn| Value::count(turn.usage.input_tokens.saturating_add(turn.usage.output_tokens)))
    }),
    field("cost_usd", Type::Number, "Dollars that its model calls cost so far.", |row| {
        row.of(|turn: &Turn| Value::Number(turn.usage.cost.usd()))
    }),
    field("depth", Type::Number, "Fired turns between it and what a person or the clock began.", |row| {
        row.of(|turn: &Turn| Value::count(turn.depth.into()))
    }),
    field("streaming", Type::Bool, "Someone reads its answer as it is written.", |row| {
        row.of(|turn: &Turn| Value::Bool(turn.streaming))
    }),
    field("cancelled", Type::Bool, "It ends at the next boundary between tool calls.", |row| {
        row.of(|turn: &Turn| Value::Bool(turn.cancelled))
    }),
    field("tainted", Type::Bool, "It has read untrusted content.", |row| {
        row.of(|turn: &Turn| Value::Bool(!turn.taint.is_none()))
    }),
    field("trigger_id", Type::Id, "The trigger that began it.", |row| {
        origin(row, |origin| if let Origin::Trigger { trigger } = origin { Some(trigger.0) } else { None })
    }),
    field("schedule_id", Type::Id, "The schedule or cron job that began it.", |row| {
        origin(row, |origin| if let Origin::Schedule { schedule } = origin { Some(schedule.0) } else { None })
    }),
    field("run_id", Type::Id, "The run of a workflow that began it.", |row| {
        origin(row, |origin| if let Origin::Workflow { run, .. } = origin { Some(run.0) } else { None })
    }),
    field("parent_turn_id", Type::Id, "The turn of another agent that began it.", |row| {
        origin(row, |origin| if let Origin::Agent { parent } = origin { Some(parent.0) } else { None })
    }),
    field("attempt", Type::Number, "How often it asked the outside for something.", |row| {
        row.of(|turn: &Turn| Value::count(turn.attempt.into()))
    }),
];

fn origin<'w>(row: &Row<'w>, id: impl FnOnce(Origin) -> Option<uuid::Uuid>) -> Value<'w> {
    row.of(|turn: &Turn| Value::maybe(id(turn.origin), Value::Id))
}
