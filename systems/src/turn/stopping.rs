//! Very many turns are stopped at once: so many in each step, so that they do not hold up the others. After a start those of
//! stopped agents end as they are brought back ([`resume`](super::resume)).

use std::collections::BTreeSet;

use bevy_ecs::prelude::{Entity, Resource, World};

use super::stop::stop;
use crate::kernel::fires::Fires;

/// Turns that ran when their stop was asked, and are yet to be stopped. One that has ended meanwhile is passed over.
#[derive(Resource, Default)]
pub(super) struct Stopping(BTreeSet<Entity>);

/// Stops these turns, as many as this step may, and the others later.
pub(super) fn stop_all(world: &mut World, turns: Vec<Entity>) {
    world.resource_mut::<Stopping>().0.extend(turns);
    go_on(world);
}

/// Stops turns, as many as a step may.
// &mut World: a turn that stops ends, with all that reacts to it.
pub(super) fn go_on(world: &mut World) {
    while has_work(world)
        && let Some(turn) = world.resource_mut::<Stopping>().0.pop_first()
    {
        world.resource_mut::<Fires>().end(1);
        stop(world, turn);
    }
}

/// Would a further round of this step stop any?
pub(super) fn has_work(world: &World) -> bool {
    !world.resource::<Stopping>().0.is_empty() && world.resource::<Fires>().ends() > 0
}

/// Is none left to be stopped?
pub(super) fn is_quiet(world: &World) -> bool {
    world.resource::<Stopping>().0.is_empty()
}
