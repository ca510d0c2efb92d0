//! Sessions are removed.

use crate::session::audit_kinds;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::limit;
use agentsvc_components::session::Session;
use agentsvc_components::{AgentId, Refusal, SessionId, Timestamp};
use serde_json::json;

use super::told::{self, SessionEvent};
use super::{HistoryEnding, SessionPosition, TurnsEnding, ending, existing, room, spawn, sweep};
use crate::audit::Audit;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, Index, id_of};
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::react;

/// Takes a session out of the world: its turns end, its rows are swept, its label is free again.
/// Of very many turns some end in the steps that follow; nobody finds the session any more.
pub(crate) fn remove(world: &mut World, entity: Entity, why: &'static str) {
    if ending::fits(world, entity) {
        remove_now(world, entity, why);
    } else {
        ending::begin(world, entity, why);
        ending::hide(world, entity, why);
    }
}

fn remove_now(world: &mut World, entity: Entity, why: &'static str) {
    react(world, &TurnsEnding { session: entity, why: why.into(), most: usize::MAX, upto: None });
    discard(world, entity, why);
}

/// The same for a session without turns.
pub(crate) fn discard(world: &mut World, entity: Entity, why: &'static str) {
    react(world, &HistoryEnding { session: entity, why });
    let Some(session) = world.get::<Session>(entity) else { return };
    let (log, used) = (session.log, session.next_ordinal > 0);
    if !session.ephemeral {
        leave_lists(world, entity, why);
    }
    if used {
        sweep(world, log);
    }
    room::release(world, entity);
    world.despawn(entity);
}

/// A session that is listed counts no more, and its label is free.
pub(super) fn leave_lists(world: &mut World, entity: Entity, why: &'static str) {
    let Some(session) = world.get::<Session>(entity) else { return };
    let (owner, label) = (session.agent, session.label.as_deref().cloned());
    room::change(world, owner, room::Taken::ONE.less());
    let id = id_of(world, entity);
    told::note(world, owner, id, SessionEvent::Ended { why });
    if let Some(label) = label {
        world.resource_mut::<Index>().remove_label(owner, &label);
    }
}

/// Takes all sessions of an agent out of the world, those of single requests too.
pub(crate) fn remove_all(world: &mut World, owner: Entity, why: &'static str) {
    let index = world.resource::<Index>();
    let ids: Vec<SessionId> = index.sessions_of(owner, None).chain(index.hidden_of(owner)).collect();
    let sessions: Vec<Entity> = ids.into_iter().filter_map(|id| index::session(world, id)).collect();
    for session in sessions {
        remove_now(world, session, why);
    }
}

/// Does so many turns and sessions of that; says how many went, and whether no turn is left, and no session but the current one.
pub(crate) fn remove_some(world: &mut World, owner: Entity, why: &'static str, most: usize) -> (usize, bool) {
    let mut ended = 0;
    while ended < most {
        let Some(current) = world.get::<Agent>(owner).map(|agent| agent.current) else { return (ended, true) };
        let index = world.resource::<Index>();
        let all = index.hidden_of(owner).chain(index.sessions_of(owner, None));
        let other = all.filter_map(|id| index::session(world, id)).find(|session| *session != current);
        let session = other.unwrap_or(current);
        let waiting = |world: &World| world.get::<Session>(session).map_or(0, |session| session.queued as usize);
        let before = waiting(world);
        react(world, &TurnsEnding { session, why: why.into(), most: most - ended, upto: None });
        let left = waiting(world);
        ended += before - left;
        if left == 0 && other.is_none() {
            return (ended, true);
        }
        if left == 0 {
            discard(world, session, why);
            ended += 1;
        }
    }
    (ended, false)
}

/// Removes one session. When it was the agent's current one, a fresh one takes its place.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RemoveSession {
    /// Which.
    pub session: SessionId,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedSession {
    /// The session that went.
    pub session: SessionId,
    /// Whose it was.
    pub agent: AgentId,
    /// The fresh current session, when the removed one was current.
    pub replaced_by: Option<SessionId>,
}

command! {
    write "remove_session" RemoveSession => RemovedSession, Id(|it| it.session.0), |it, world|
        Answer::stored(remove_one(world, it.session))
}

fn remove_one(world: &mut World, id: SessionId) -> Result<RemovedSession, Refusal> {
    let entity = existing(world, id)?;
    let owner = world.get::<Session>(entity).map(|session| session.agent);
    let owner = owner.ok_or_else(|| Refusal::not_found("session", id))?;
    let current = world.get::<Agent>(owner).is_some_and(|agent| agent.current == entity);
    let mut replaced_by = None;
    if current {
        let fresh = spawn(world, owner, None, None);
        if let Some(mut agent) = world.get_mut::<Agent>(owner) {
            agent.current = fresh;
        }
        world.mark(owner);
        replaced_by = Some(id_of(world, fresh));
    }
    remove(world, entity, "the session was deleted");
    let agent = id_of(world, owner);
    world.audit(audit_kinds::SESSION_REMOVED, agent, json!({ "session": id }));
    Ok(RemovedSession { session: id, agent, replaced_by })
}

/// Removes sessions that are old and not in use, a bounded number per step: never a current one, a labelled
/// one, or one with open turns.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CleanupSessions {
    /// Sessions last used before this moment go.
    pub unused_since: Timestamp,
    /// Go on after this.
    pub after: Option<SessionPosition>,
}

command! {
    /// How many went, and where to go on.
    write "cleanup_sessions" CleanupSessions => (usize, Option<SessionPosition>), All, |it, world|
        Answer::Stored(cleanup(world, it))
}

fn cleanup(world: &mut World, command: CleanupSessions) -> (usize, Option<SessionPosition>) {
    let after = command.after.and_then(|at| at.place(world));
    let page: Vec<(Entity, SessionId)> =
        world.resource::<Index>().sessions_after(after).take(limit::PAGE_SCAN_MAX).collect();
    let next = (page.len() == limit::PAGE_SCAN_MAX).then(|| page.last()).flatten();
    let next = next.map(|(owner, session)| SessionPosition { owner: owner.to_bits(), session: *session });
    let mut removed = 0;
    for (owner, id) in page {
        let Some(entity) = index::session(world, id) else { continue };
        let current = world.get::<Agent>(owner).is_some_and(|agent| agent.current == entity);
        let Some(session) = world.get::<Session>(entity) else { continue };
        let idle = session.head.is_none() && session.label.is_none() && session.updated_at < command.unused_since;
        if idle && !current {
            remove(world, entity, "the session was cleaned up");
            removed += 1;
        }
    }
    if removed > 0 {
        let unused_since = command.unused_since.to_string();
        world.audit(audit_kinds::SESSIONS_CLEANED, None, json!({ "removed": removed, "unused_since": unused_since }));
    }
    (removed, next)
}
