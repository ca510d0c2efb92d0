//! Reactions: what other domains do in the same step in which something happens.
//!
//! A domain that something happens in calls [`react`]; domains above it say with [`on`] what they do then. So arrows
//! between domains point down only. Reactions run at once, in the order in which domains are installed.
//!
//! What others may have to say against something is asked first: they say with [`rule`] when it must not happen, and the
//! domain that it happens in calls [`check`].

use bevy_ecs::prelude::{Entity, Resource, World};

use agentsvc_components::Refusal;

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

/// What the domains have to say against `E`.
#[derive(Resource)]
struct Rules<E: 'static>(Vec<Rule<E>>);

/// Refuses `E` where it must not happen, and changes nothing.
type Rule<E> = fn(&World, &E) -> Result<(), Refusal>;

/// From now on `E` happens only where `rule` allows it. For `install` functions.
pub(crate) fn rule<E: 'static>(world: &mut World, rule: Rule<E>) {
    world.get_resource_or_insert_with(|| Rules::<E>(Vec::new())).0.push(rule);
}

/// May `event` happen? The first refusal counts.
pub(crate) fn check<E: 'static>(world: &World, event: &E) -> Result<(), Refusal> {
    let rules = world.get_resource::<Rules<E>>().map_or(&[][..], |rules| &rules.0);
    rules.iter().try_for_each(|rule| rule(world, event))
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

    #[test]
    fn the_first_rule_that_refuses_counts() {
        let mut world = World::new();
        assert!(check(&world, &Rang(0)).is_ok());
        rule(&mut world, |_, event: &Rang| if event.0 > 1 { Err(Refusal::conflict("loud")) } else { Ok(()) });
        rule(&mut world, |_, event: &Rang| if event.0 > 0 { Err(Refusal::conflict("any")) } else { Ok(()) });
        let why = |n| check(&world, &Rang(n)).unwrap_err().message;
        assert_eq!((why(1).as_str(), why(2).as_str()), ("any", "loud"));
        assert!(check(&world, &Rang(0)).is_ok() && check(&world, &()).is_ok());
    }
}
