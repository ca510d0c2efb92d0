//! History is cleared: the session gets a fresh log, or the agent a fresh session.

use std::collections::VecDeque;

use crate::session::{audit_kinds, limits};
use bevy_ecs::prelude::{Entity, Resource, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::taint::{KnownAddresses, Taint};
use agentsvc_components::session::Session;
use agentsvc_components::{Actor, AgentId, Refusal, SessionId};
use serde_json::json;

use super::told::{self, SessionEvent};
use super::{HistoryEnding, TurnsEnding, ending, remove, room, spawn, sweep};
use crate::audit::Audit;
use crate::kernel::acting::Acting;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, ReplySlot, command};
use crate::kernel::fires::Fires;
use crate::kernel::id_generator::IdGenerator;
use crate::kernel::index::{self, Index, id_of};
use crate::kernel::outbox::{Emit, Exclusive, Outbox};
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
/// (spec 1, DELETE /api/agents/{id}/history). Of very many sessions some are cleared in the steps that follow. A daemon that ends
/// before the reply leaves the others as they are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ClearHistory {
    /// Whose.
    pub agent: AgentId,
}

command! {
    /// How many messages went.
    write "clear_history" ClearHistory => u64, Id(|it| it.agent.0), |it, world| match begin(world, it.agent) {
        Ok(clearing) if clearing.is_done => Answer::Stored(end(world, clearing)),
        Ok(clearing) => Answer::Later(Box::new(move |world, slot| {
            let mut clearings = world.resource_mut::<Clearings>();
            clearings.queue.get().push_back((clearing, slot));
            clearings.count += 1;
        })),
        Err(refusal) => Answer::Now(Err(refusal)),
    }
}

/// A history that is being cleared.
struct Clearing {
    agent: AgentId,
    /// Who asked for it.
    by: Actor,
    /// The last session that was cleared.
    after: Option<SessionId>,
    /// Messages that went.
    messages: u64,
    is_done: bool,
}

/// Histories that later steps go on with, and who waits for them. At most [`CLEARINGS_MAX`](limits::CLEARINGS_MAX).
#[derive(Resource, Default)]
pub(super) struct Clearings {
    queue: Exclusive<VecDeque<(Clearing, ReplySlot<u64>)>>,
    /// How many there are.
    count: usize,
}

fn begin(world: &mut World, agent: AgentId) -> Result<Clearing, Refusal> {
    index::agent(world, agent)?;
    if world.resource::<Clearings>().count >= limits::CLEARINGS_MAX {
        return Err(Refusal::busy("too many histories are being cleared; try again later", 5));
    }
    let by = world.resource::<Acting>().0;
    let mut clearing = Clearing { agent, by, after: None, messages: 0, is_done: false };
    advance(world, &mut clearing);
    Ok(clearing)
}

/// Clears sessions, as many as a step may, those that were made first before others.
fn advance(world: &mut World, clearing: &mut Clearing) {
    while let Ok(owner) = index::agent(world, clearing.agent) {
        let Some(id) = world.resource::<Index>().sessions_of(owner, clearing.after).next() else { break };
        if clearing.after.is_some() && world.resource::<Fires>().ends() == 0 {
            return;
        }
        let Some(entity) = index::session(world, id) else { break };
        // The first of an agent that has one alone is free.
        world.resource_mut::<Fires>().end(usize::from(clearing.after.is_some()));
        clearing.messages += clear_one(world, owner, entity);
        clearing.after = Some(id);
    }
    clearing.is_done = true;
}

/// Ends the turns of a session and gives it a fresh log; says how many messages went. Of very many turns some end in the steps that
/// follow, before those that come in from here on.
fn clear_one(world: &mut World, owner: Entity, entity: Entity) -> u64 {
    let (why, now) = ("the history was cleared", world.resource::<Now>().0);
    if ending::fits(world, entity) {
        react(world, &TurnsEnding { session: entity, why: why.into(), most: usize::MAX, upto: None });
        react(world, &HistoryEnding { session: entity, why });
    } else {
        ending::begin(world, entity, why);
    }
    let fresh = world.resource_mut::<IdGenerator>().log();
    let Some(mut session) = world.get_mut::<Session>(entity).filter(|session| session.next_ordinal > 0) else {
        return 0;
    };
    let messages = u64::from(session.message_count);
    let old = std::mem::replace(&mut session.log, fresh);
    (session.message_count, session.next_ordinal, session.updated_at) = (0, 0, now);
    session.compacted = 0;
    session.taint = Taint::NONE;
    world.entity_mut(entity).remove::<KnownAddresses>();
    room::release(world, entity);
    world.mark(entity);
    sweep(world, old);
    told::note(world, owner, id_of(world, entity), SessionEvent::Reset { why });
    messages
}

fn end(world: &mut World, clearing: Clearing) -> u64 {
    let before = std::mem::replace(&mut world.resource_mut::<Acting>().0, clearing.by);
    world.audit(audit_kinds::HISTORY_CLEARED, clearing.agent, json!({ "messages": clearing.messages }));
    world.resource_mut::<Acting>().0 = before;
    clearing.messages
}

/// Goes on with histories that are being cleared, as far as a step may.
// &mut World: turns end with all that reacts to it.
pub(super) fn go_on(world: &mut World) {
    while has_work(world)
        && let Some((mut clearing, slot)) = world.resource_mut::<Clearings>().queue.get().pop_front()
    {
        advance(world, &mut clearing);
        if clearing.is_done {
            let messages = end(world, clearing);
            world.resource_mut::<Outbox>().reply(slot, Ok(messages));
        } else {
            world.resource_mut::<Clearings>().queue.get().push_front((clearing, slot));
        }
    }
    let mut clearings = world.resource_mut::<Clearings>();
    clearings.count = clearings.queue.get().len();
}

/// Would a further round of this step clear any?
pub(super) fn has_work(world: &World) -> bool {
    world.resource::<Clearings>().count > 0 && world.resource::<Fires>().ends() > 0
}

/// Is no history being cleared?
pub(super) fn is_quiet(world: &World) -> bool {
    world.resource::<Clearings>().count == 0
}
