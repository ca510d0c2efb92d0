//! Reactions: what other domains do in the same step in which something happens.
//!
//! A domain that something happens in calls [`react`]; domains above it say with [`on`] what they do then. So arrows
//! between domains point down only. Reactions run at once, in the order in which domains are installed.

use bevy_ecs::prelude::{Entity, Resource, World};

/// Something that others may belong to leaves the world. Its entity is still there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Removed<Id> {
    /// Its entity.
    pub(crate) entity: Entity,
    /// Its id.
    pub(crate) id: Id,
}

/// What the domains do when `E` happens.
#[derive(Resource)]
struct Reactions<E: 'static>(Vec<fn(&mut World, &E)>);

/// From now on `reaction` runs whenever `E` happens. For `install` functions.
pub(crate) fn on<E: 'static>(world: &mut World, reaction: fn(&mut World, &E)) {
    world.get_resource_or_insert_with(|| Reactions::<E>(Vec::new())).0.push(reaction);
}

/// Runs the reactions to `event`.
pub(crate) fn react<E: 'static>(world: &mut World, event: &E) {
    let count = world.get_resource::<Reactions<E>>().map_or(0, |reactions| reactions.0.len());
    for at in 0..count {
        let reaction = world.resource::<Reactions<E>>().0[at];
        reaction(world, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Resource, Default)]
    struct Seen(Vec<u32>);

    struct Rang(u32);

    #[test]
    fn reactions_run_in_order_and_only_to_their_event() {
        let mut world = World::new();
        world.init_resource::<Seen>();
        react(&mut world, &Rang(0));
        on(&mut world, |world, event: &Rang| world.resource_mut::<Seen>().0.push(event.0));
        on(&mut world, |world, event: &Rang| world.resource_mut::<Seen>().0.push(event.0 + 10));
        on(&mut world, |world, _: &()| world.resource_mut::<Seen>().0.push(99));
        react(&mut world, &Rang(1));
        assert_eq!(world.resource::<Seen>().0, [1, 11]);
    }
}
