//! What queries see of sessions.

use agentsvc_components::session::Session;
use agentsvc_components::{AgentId, SessionId};

use crate::agent::query::{AGENTS, BY_AGENT, named};
use crate::kernel::expr::{Type, Value};
use crate::kernel::index::{self, Index};
use crate::kernel::table::{Cursor, Field, Item, Kind, Lookup, Relation, Source, field, id_at};

pub(crate) static SESSIONS: Kind = Kind {
    name: "sessions",
    text: "Sessions, except those created for a single request.",
    fields: &SESSION_FIELDS,
    relations: &[Relation {
        name: "agent",
        to: &AGENTS,
        text: "Agent.",
        follow: |row| row.get::<Session>().map(|session| Item::Entity(session.agent)),
    }],
    shown: &["id", "agent.name", "label", "messages", "queued", "updated_at"],
    source: Source {
        // Sessions that no list shows are not found here either.
        by_id: Some(|world, id| {
            let found = index::session(world, SessionId(id))?;
            let session = world.get::<Session>(found)?;
            (!session.ephemeral).then_some(found)
        }),
        lookups: &[Lookup {
            fields: BY_AGENT,
            rows: |page, agent| {
                let Some((_, agent)) = named(page.world, agent) else { return Cursor::End };
                let world = page.world;
                let found = world.resource::<Index>().sessions_of(agent, page.after().map(SessionId));
                page.entities(found.filter_map(|id| Some((id.0, index::session(world, id)?))))
            },
        }],
        ..Source::of(|page| {
            let (world, cursor) = (page.world, page.cursor);
            let after =
                if let Cursor::AfterOwned(agent, id) = cursor { Some((agent, Some(SessionId(id)))) } else { None };
            let found = world.resource::<Index>().sessions_after(after);
            let found = found.filter_map(|(agent, id)| Some(((agent, id.0), Item::Entity(index::session(world, id)?))));
            page.walk(found, |(agent, id)| Cursor::AfterOwned(agent, id))
        })
    },
};

const SESSION_FIELDS: [Field; 11] = [
    field("id", Type::Id, "Unique id.", |row| row.of(|id: &SessionId| Value::Id(id.0))),
    field("agent_id", Type::Id, "Agent.", |row| {
        row.of(|session: &Session| id_at(row, session.agent, |id: AgentId| id.0))
    }),
    field("label", Type::Text, "Label.", |row| {
        row.of(|session: &Session| Value::maybe(session.label.as_deref(), |label| Value::text(label)))
    }),
    field("created_at", Type::Time, "Creation time.", |row| {
        row.of(|session: &Session| Value::Time(session.created_at))
    }),
    field("updated_at", Type::Time, "Time of the last message, response or label change.", |row| {
        row.of(|session: &Session| Value::Time(session.updated_at))
    }),
    field("messages", Type::Number, "User messages and responses so far.", |row| {
        row.of(|session: &Session| Value::count(session.message_count.into()))
    }),
    field("queued", Type::Number, "Turns in its queue, including the running turn.", |row| {
        row.of(|session: &Session| Value::count(session.queued.into()))
    }),
    field("busy", Type::Bool, "Whether a turn is open.", |row| {
        row.of(|session: &Session| Value::Bool(session.head.is_some()))
    }),
    field("interrupted", Type::Bool, "Whether the running turn was interrupted.", |row| {
        row.of(|session: &Session| Value::Bool(session.interrupted))
    }),
    field("compacted", Type::Number, "Turns replaced by a summary.", |row| {
        row.of(|session: &Session| Value::count(session.compacted.into()))
    }),
    field("tainted", Type::Bool, "Whether the history contains untrusted content.", |row| {
        row.of(|session: &Session| Value::Bool(!session.taint.is_none()))
    }),
];
