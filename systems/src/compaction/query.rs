//! What queries see of sessions that are being summarised.

use agentsvc_components::compaction::{Compaction, CompactionState};
use agentsvc_components::{AgentId, CompactionId, SessionId};
use uuid::Uuid;

use super::Compactions;
use crate::agent::query::AGENTS;
use crate::agent::session_table::SESSIONS;
use crate::kernel::expr::{Type, Value};
use crate::kernel::table::{Field, Item, Kind, Relation, Source, field, id_at};

pub(crate) static COMPACTIONS: Kind = Kind {
    name: "compactions",
    text: "Sessions being compacted.",
    fields: &COMPACTION_FIELDS,
    relations: &[
        Relation {
            name: "agent",
            to: &AGENTS,
            text: "Agent of the session.",
            follow: |row| row.get::<Compaction>().map(|compaction| Item::Entity(compaction.agent)),
        },
        Relation {
            name: "session",
            to: &SESSIONS,
            text: "Session.",
            follow: |row| row.get::<Compaction>().map(|compaction| Item::Entity(compaction.session)),
        },
    ],
    shown: &["id", "agent.name", "session_id", "state", "from_turn", "upto_turn"],
    source: Source {
        by_id: Some(|world, id| world.resource::<Compactions>().get(CompactionId(id))),
        ..Source::of(|page| {
            let compactions = page.world.resource::<Compactions>();
            let keys = compactions.ids().map(|id| id.0.as_bytes().as_slice().into());
            page.listed(keys, |key| Some(Item::Entity(compactions.get(CompactionId(Uuid::from_slice(key).ok()?))?)))
        })
    },
};

const COMPACTION_FIELDS: [Field; 6] = [
    field("id", Type::Id, "Unique id.", |row| row.of(|id: &CompactionId| Value::Id(id.0))),
    field("agent_id", Type::Id, "Agent of the session.", |row| {
        row.of(|compaction: &Compaction| id_at(row, compaction.agent, |id: AgentId| id.0))
    }),
    field("session_id", Type::Id, "Session.", |row| {
        row.of(|compaction: &Compaction| id_at(row, compaction.session, |id: SessionId| id.0))
    }),
    field("state", Type::Word(&["reserving", "calling"]), "State.", |row| {
        row.of(|compaction: &Compaction| {
            Value::text(match compaction.state {
                CompactionState::Reserving => "reserving",
                CompactionState::Calling => "calling",
            })
        })
    }),
    field("from_turn", Type::Number, "First turn to be summarized.", |row| {
        row.of(|compaction: &Compaction| Value::count(compaction.from.into()))
    }),
    field("upto_turn", Type::Number, "First turn after those to be summarized.", |row| {
        row.of(|compaction: &Compaction| Value::count(compaction.upto.into()))
    }),
];
