//! Turns that were open when the daemon ended go on.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::TurnId;
use agentsvc_components::turn::{Turn, TurnState};

use super::finish::{End, finish};
use super::{admit, inbox, settle};
use crate::index::Index;
use crate::outbox::Emit;
use crate::stats::Counters;

/// Brings a stored turn back. Called in inbox order. Its old attempt can no longer answer: every call that
/// goes out again carries a new one.
pub(crate) fn resume(world: &mut World, id: TurnId, turn: Turn) {
    let (agent, session, state) = (turn.agent, turn.session, turn.state);
    let entity = world.spawn((id, turn)).id();
    world.resource_mut::<Index>().insert_owned_turn(agent, entity);
    let first = inbox::push(world, session, entity);
    if !first {
        return;
    }
    world.resource_mut::<Counters>().turns_resumed += 1;
    match state {
        TurnState::Stopping => finish(world, entity, End::Stopped(None)),
        TurnState::WaitingForTools => {
            if let Some(mut turn) = world.get_mut::<Turn>(entity) {
                turn.attempt += 1;
            }
            world.mark(entity);
            settle::send_tools(world, entity, true);
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

/// Puts the head of a session in line again after its agent was stopped and started.
pub(crate) fn restart(world: &mut World, head: Entity) {
    if world.get::<Turn>(head).is_some_and(|turn| turn.state == TurnState::Reserving) {
        admit::enqueue(world, head);
    }
}
