//! History is cleared: the session gets a fresh log, or the agent a fresh session.

use crate::session::audit_kinds;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::taint::{KnownAddresses, Taint};
use agentsvc_components::session::Session;
use agentsvc_components::{AgentId, Refusal, SessionId};
use serde_json::json;

use super::told::{self, SessionEvent};
use super::{HistoryEnding, TurnsEnding, remove, room, spawn, sweep};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::id_generator::IdGenerator;
use crate::kernel::index::{self, Index, id_of};
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::react;

/// Replaces the current session by a fresh one and removes its history
/// (spec 1, POST /api/agents/{id}/session/reset).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ResetSession {
    /// Whose.
    pub agent: AgentId,
}

command! {
    /// The fresh session.
    write "reset_session" ResetSession => SessionId, Id(|it| it.agent.0), |it, world|
        Answer::stored(reset(world, it.agent))
}

fn reset(world: &mut World, agent: AgentId) -> Result<SessionId, Refusal> {
    let owner = index::agent(world, agent)?;
    let now = world.resource::<Now>().0;
    let fresh = spawn(world, owner, None, None);
    let mut old = None;
    if let Some(mut agent) = world.get_mut::<Agent>(owner) {
        old = Some(std::mem::replace(&mut agent.current, fresh));
        agent.updated_at = now;
    }
    world.mark(owner);
    if let Some(old) = old {
        let session = id_of::<SessionId>(world, old);
        told::note(world, owner, session, SessionEvent::Reset { why: "the session was reset" });
        world.audit(audit_kinds::SESSION_RESET, agent, json!({ "session": session }));
        remove(world, old, "the session was reset");
    }
    Ok(id_of(world, fresh))
}

/// Clears the history of all sessions of an agent; the sessions stay
/// (spec 1, DELETE /api/agents/{id}/history).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ClearHistory {
    /// Whose.
    pub agent: AgentId,
}

command! {
    /// How many messages went.
    write "clear_history" ClearHistory => u64, Id(|it| it.agent.0), |it, world| Answer::stored(clear(world, it.agent))
}

fn clear(world: &mut World, agent: AgentId) -> Result<u64, Refusal> {
    let owner = index::agent(world, agent)?;
    let now = world.resource::<Now>().0;
    let ids: Vec<SessionId> = world.resource::<Index>().sessions_of(owner, None).collect();
    let mut cleared = 0;
    for id in ids {
        let Some(entity) = index::session(world, id) else { continue };
        let why = "the history was cleared";
        react(world, &TurnsEnding { session: entity, why });
        react(world, &HistoryEnding { session: entity, why });
        let fresh = world.resource_mut::<IdGenerator>().log();
        let Some(mut session) = world.get_mut::<Session>(entity) else { continue };
        if session.next_ordinal == 0 {
            continue;
        }
        cleared += u64::from(session.message_count);
        let old = std::mem::replace(&mut session.log, fresh);
        (session.message_count, session.next_ordinal, session.updated_at) = (0, 0, now);
        session.compacted = 0;
        session.taint = Taint::NONE;
        world.entity_mut(entity).remove::<KnownAddresses>();
        room::release(world, entity);
        world.mark(entity);
        sweep(world, old);
        told::note(world, owner, id, SessionEvent::Reset { why });
    }
    world.audit(audit_kinds::HISTORY_CLEARED, agent, json!({ "messages": cleared }));
    Ok(cleared)
}
