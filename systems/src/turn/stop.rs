//! Stop: running turns are given up (spec 1, POST /api/agents/{id}/stop), and turns that lose their home end.

use crate::session::error_codes;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::compaction::Compaction;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::session::Session;
use agentsvc_components::turn::{Turn, TurnState};
use agentsvc_components::{AgentId, Refusal, SessionId, TurnId};

use super::delegate::children;
use super::finish::{End, close, finish, remove};
use super::{admit, inbox, stopping};
use crate::agent::REMOVED;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, Index, id_of};
use crate::kernel::outbox::Emit;
use crate::session;

/// Stops the running turn of every session of an agent, or of one. Messages that wait behind them are answered
/// next: they were acknowledged.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct StopTurns {
    /// Whose.
    pub agent: AgentId,
    /// Only in this session.
    pub session: Option<SessionId>,
}

command! {
    /// How many turns were running.
    last_write "stop_turns" StopTurns => usize, Id(|it| it.agent.0), |it, world| Answer::stored(stop_some(world, it))
}

fn stop_some(world: &mut World, command: StopTurns) -> Result<usize, Refusal> {
    let agent = index::agent(world, command.agent)?;
    let Some(id) = command.session else { return Ok(stop_running(world, agent)) };
    let session = session::owned(world, agent, id)?;
    let head = world.get::<Session>(session).and_then(|session| session.head);
    let running = head.filter(|turn| is_running(world, *turn));
    if let Some(running) = running {
        stop(world, running);
    }
    stop_children(world, command.agent, Some(id));
    Ok(usize::from(running.is_some()))
}

/// Stops the running turn of every session of `agent`, of very many some in the steps that follow; says how many there were.
pub(super) fn stop_running(world: &mut World, agent: Entity) -> usize {
    let running: Vec<Entity> =
        world.resource::<Index>().turns_of(agent).filter(|turn| is_running(world, *turn)).collect();
    let count = running.len();
    stopping::stop_all(world, running);
    stopping::keep(world, agent);
    let agent = id_of(world, agent);
    stop_children(world, agent, None);
    count
}

/// Stops the turns that an agent began in others through `agent_send`, and theirs (spec 1, Interrupting a turn).
pub(super) fn stop_children(world: &mut World, agent: AgentId, session: Option<SessionId>) {
    for child in children(world, agent, session) {
        let Some(mut turn) = world.get_mut::<Turn>(child) else { continue };
        if turn.cancelled || turn.state == TurnState::Stopping {
            continue;
        }
        if turn.state == TurnState::Queued {
            // It ends when its place in the other agent's inbox comes up.
            turn.cancelled = true;
        }
        let (agent, session) = (turn.agent, turn.session);
        world.mark(child);
        let (agent, session) = (id_of(world, agent), id_of(world, session));
        stop(world, child);
        stop_children(world, agent, Some(session));
    }
}

fn is_running(world: &World, turn: Entity) -> bool {
    world.get::<Turn>(turn).is_some_and(|turn| turn.state != TurnState::Queued)
}

pub(super) fn stop(world: &mut World, entity: Entity) {
    let Some(turn) = world.get::<Turn>(entity) else { return };
    match turn.state {
        TurnState::Calling => {
            abort(world, entity);
            if let Some(mut turn) = world.get_mut::<Turn>(entity) {
                turn.state = TurnState::Stopping;
            }
            world.mark(entity);
        }
        TurnState::WaitingForTools | TurnState::WaitingForApproval => {
            abort(world, entity);
            finish(world, entity, End::Stopped(None));
        }
        TurnState::Reserving => finish(world, entity, End::Stopped(None)),
        TurnState::Stopping | TurnState::Queued => {}
    }
}

/// Asks the outside to give up what this turn has out.
fn abort(world: &mut World, entity: Entity) {
    let Some(turn) = world.get::<Turn>(entity) else { return };
    let attempt = Attempt::of(id_of::<TurnId>(world, entity), turn.attempt);
    world.effect(Abort(attempt));
}

/// Ends so many turns of a session that is about to go, the running one first and then those that wait. The first of those that
/// are left runs no more: its agent or its session is gone, or it ends in this step too. Those behind `upto` go on.
pub(super) fn end_some(world: &mut World, session: Entity, why: &str, (most, upto): (usize, Option<TurnId>)) {
    let goes_on = |world: &World, turn: Entity| upto.is_some_and(|upto| id_of::<TurnId>(world, turn) > upto);
    let mut ended = false;
    for _ in 0..most {
        let Some(entity) = world.get::<Session>(session).and_then(|session| session.head) else { break };
        if goes_on(world, entity) {
            break;
        }
        let out = world.get::<Turn>(entity).is_some_and(|turn| {
            matches!(turn.state, TurnState::Calling | TurnState::Stopping) || turn.state.has_calls()
        });
        if out {
            abort(world, entity);
        }
        close(world, entity, End::Failed(error_codes::SESSION_REMOVED, why.to_owned()));
        inbox::pop(world, session);
        remove(world, entity);
        ended = true;
    }
    let Some(home) = world.get::<Session>(session) else { return };
    let (owner, first) = (home.agent, home.head);
    if let Some(first) = first.filter(|first| goes_on(world, *first)) {
        if ended {
            admit::enqueue(world, first);
        }
    } else if let Some(mut turn) = first.and_then(|first| world.get_mut::<Turn>(first))
        && turn.state == TurnState::Queued
    {
        turn.state = TurnState::Reserving;
        world.mark(first.expect("it has just been found"));
    }
    if world.get::<AgentId>(owner).is_some() {
        let (owner, session) = (id_of(world, owner), id_of(world, session));
        stop_children(world, owner, Some(session));
    }
}

/// Is the agent of this turn or compaction gone, or the session of this turn gone or cleared? Then nothing of it goes on.
pub(crate) fn is_going(world: &World, entity: Entity) -> bool {
    is_leaving(world, entity)
        || world
            .get::<Turn>(entity)
            .is_some_and(|turn| session::ending_of(world, turn.session, id_of(world, entity)).is_some())
}

/// Is the agent of this turn or compaction gone?
pub(super) fn is_leaving(world: &World, entity: Entity) -> bool {
    let owner = world.get::<Turn>(entity).map(|turn| turn.agent);
    let owner = owner.or_else(|| world.get::<Compaction>(entity).map(|job| job.agent));
    owner.and_then(|owner| world.get::<Agent>(owner)).is_some_and(|agent| agent.state == AgentState::Terminated)
}

/// Something came back for the running turn of an agent or a session that is gone: it ends now.
pub(super) fn end_going(world: &mut World, entity: Entity) {
    let Some(session) = world.get::<Turn>(entity).map(|turn| turn.session) else { return };
    let ending =
        session::ending_of(world, session, id_of(world, entity)).filter(|_| !is_leaving(world, entity)).cloned();
    let (why, upto) = ending.map_or_else(|| (REMOVED.into(), None), |ending| (ending.why, Some(ending.upto)));
    end_some(world, session, &why, (1, upto));
}
