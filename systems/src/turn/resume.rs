//! Turns that were open when the daemon ended go on.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::session::Session;
use agentsvc_components::turn::{PendingState, PendingTool, Turn, TurnState};
use agentsvc_components::{SessionId, TurnId};

use super::finish::{End, finish};
use super::{Children, admit, delegate, inbox, stop, tools};
use crate::budget;
use crate::kernel::index::{self, Index};
use crate::kernel::outbox::Emit;
use crate::turn::metrics::TurnTotals;

/// Brings a stored turn back. Called in inbox order. Its old attempt can no longer answer: every call that
/// goes out again carries a new one.
pub(crate) fn resume(world: &mut World, id: TurnId, turn: Turn) {
    let (agent, session, state, origin) = (turn.agent, turn.session, turn.state, turn.origin);
    let link = turn.link.clone();
    let entity = world.spawn((id, turn)).id();
    world.resource_mut::<Index>().turns_by_agent.insert((agent, entity));
    if let Some(link) = link {
        world.resource_mut::<Children>().insert(&link, entity);
    }
    let first = inbox::push(world, session, entity);
    if !first {
        return;
    }
    world.resource_mut::<TurnTotals>().resumed += 1;
    let is_hidden = || world.get::<Session>(session).is_some_and(|session| session.ephemeral);
    if !origin.is_awaited_by_world() && is_hidden() && !stop::is_going(world, entity) {
        // Whoever waited for the answer went with the daemon: it ends once every turn is back.
        return;
    }
    let is_stopped = world.get::<Agent>(agent).is_some_and(|agent| agent.state == AgentState::Stopped);
    match state {
        TurnState::Stopping => finish(world, entity, End::Stopped(None)),
        // The daemon ended before the turn was stopped with its agent.
        TurnState::Calling | TurnState::WaitingForTools | TurnState::WaitingForApproval if is_stopped => {
            finish(world, entity, End::Stopped(None));
        }
        TurnState::WaitingForTools | TurnState::WaitingForApproval if is_cut_off(world, entity) => {
            finish(world, entity, End::Interrupted);
        }
        TurnState::WaitingForTools | TurnState::WaitingForApproval => {
            if let Some(mut turn) = world.get_mut::<Turn>(entity) {
                turn.attempt += 1;
            }
            world.mark(entity);
            let waiting: Vec<u32> = world.get::<Turn>(entity).map_or_else(Vec::new, |turn| {
                turn.pending.iter().filter(|call| goes_out(call)).map(|call| call.index).collect()
            });
            tools::enqueue(world, agent, entity, waiting);
        }
        TurnState::Calling => {
            // The lost call was begun but never came back: the one that replaces it is the same iteration.
            if let Some(mut turn) = world.get_mut::<Turn>(entity) {
                turn.iteration = turn.iteration.saturating_sub(1);
            }
            admit::enqueue(world, entity);
        }
        TurnState::Queued | TurnState::Reserving => admit::enqueue(world, entity),
    }
}

/// Was its stop asked, and the daemon ended before it stopped? What of it had not begun must not begin now.
fn is_cut_off(world: &World, entity: Entity) -> bool {
    let begins = |call: &PendingTool| matches!(call.state, PendingState::Waiting | PendingState::Gated(_));
    world.get::<Turn>(entity).is_some_and(|turn| turn.cancelled && turn.pending.iter().any(begins))
}

/// Is this a call that waits for its place, or was out? Others are answered by a person or by another turn.
const fn goes_out(call: &PendingTool) -> bool {
    matches!(call.state, PendingState::Waiting | PendingState::Out)
}

/// Once every turn is back: calls that wait for turns that are gone are settled, and turns that wait for nothing go on.
pub(crate) fn reconcile(world: &mut World, turns: &[TurnId]) {
    for turn in turns {
        if let Some(entity) = index::turn(world, *turn) {
            delegate::settle_orphans(world, entity);
            tools::proceed(world, entity);
        }
    }
}

/// Puts the heads of an agent's sessions in line again after it was stopped and started.
pub(super) fn restart(world: &mut World, agent: Entity) {
    let sessions: Vec<SessionId> = world.resource::<Index>().sessions_of(agent, None).collect();
    let heads = sessions.into_iter().filter_map(|id| index::session(world, id));
    let heads: Vec<Entity> = heads.filter_map(|session| world.get::<Session>(session)?.head).collect();
    for head in heads {
        restart_one(world, head);
    }
}

fn restart_one(world: &mut World, head: Entity) {
    if world.get::<Turn>(head).is_some_and(|turn| turn.state == TurnState::Reserving) {
        // It may wait for money still: then it is judged again, and waits once.
        budget::leave(world, head);
        admit::enqueue(world, head);
    }
}
