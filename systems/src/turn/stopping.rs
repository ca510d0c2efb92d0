//! Very many turns are stopped at once: so many in each step, so that they do not hold up the others. After a start those of
//! stopped agents end as they are brought back ([`resume`](super::resume)), and those of others are cancelled.

use std::collections::BTreeSet;

use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::turn::Turn;
use bevy_ecs::prelude::{Entity, Resource, World};

use super::stop::stop;
use crate::kernel::fires::{Fires, ends_at_once};
use crate::kernel::index::Index;
use crate::kernel::outbox::Emit;

/// Turns that ran when their stop was asked, and are yet to be stopped. One that has ended meanwhile is passed over.
#[derive(Resource, Default)]
pub(super) struct Stopping(BTreeSet<Entity>);

/// Stops these turns, as many as this step may, and the others later.
pub(super) fn stop_all(world: &mut World, turns: Vec<Entity>) {
    let mut at_once = ends_at_once(world);
    world.resource_mut::<Stopping>().0.extend(turns);
    while at_once > 0 && stop_next(world) {
        at_once -= 1;
    }
}

/// Keeps in the records of an agent's turns that they are yet to be stopped, so that no crash undoes it. Those of an agent that is
/// stopped need that once it is started again.
pub(super) fn keep(world: &mut World, agent: Entity) {
    if world.get::<Agent>(agent).is_none_or(|agent| agent.state != AgentState::Running) {
        return;
    }
    let stopping = &world.resource::<Stopping>().0;
    if stopping.is_empty() {
        return;
    }
    let theirs: Vec<_> = world.resource::<Index>().turns_of(agent).filter(|turn| stopping.contains(turn)).collect();
    for entity in theirs {
        let turn = world.get_mut::<Turn>(entity).filter(|turn| !turn.cancelled);
        if let Some(mut turn) = turn {
            turn.cancelled = true;
            world.mark(entity);
        }
    }
}

/// Is it yet to be stopped?
pub(super) fn is_stopping(world: &World, turn: Entity) -> bool {
    world.resource::<Stopping>().0.contains(&turn)
}

fn stop_next(world: &mut World) -> bool {
    let Some(turn) = world.resource_mut::<Stopping>().0.pop_first() else { return false };
    world.resource_mut::<Fires>().end(1);
    stop(world, turn);
    true
}

/// Stops turns, as many as a step may.
// &mut World: a turn that stops ends, with all that reacts to it.
pub(super) fn go_on(world: &mut World) {
    while has_work(world) && stop_next(world) {}
}

/// Would a further round of this step stop any?
pub(super) fn has_work(world: &World) -> bool {
    !world.resource::<Stopping>().0.is_empty() && world.resource::<Fires>().ends() > 0
}

/// Is none left to be stopped?
pub(super) fn is_quiet(world: &World) -> bool {
    world.resource::<Stopping>().0.is_empty()
}
