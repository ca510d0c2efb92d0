//! Totals since the daemon started.

use bevy_ecs::prelude::{Resource, World};

/// Outcomes that came too late and were dropped, since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct StaleOutcomes(pub(crate) u64);

/// A resource of a domain that counts since the daemon started: a world that takes the place of another counts on from it.
#[derive(Clone, Copy)]
pub struct Totals {
    /// Puts it into an empty world.
    pub(crate) init: fn(&mut World),
    /// Takes it over from another world.
    pub(crate) count_on: fn(&World, &mut World),
}

impl Totals {
    /// Those in the resource `T`.
    pub(crate) const fn of<T: Resource + Copy + Default>() -> Self {
        Self {
            init: |world| {
                world.init_resource::<T>();
            },
            count_on: |from, to| to.insert_resource(*from.resource::<T>()),
        }
    }
}

/// A resource of a domain that begins anew with each step, such as a sum of what one step may take.
#[derive(Clone, Copy)]
pub struct PerStep(fn(&mut World));

impl PerStep {
    /// The resource `T`.
    pub(crate) const fn of<T: Resource + Default>() -> Self {
        Self(|world| world.insert_resource(T::default()))
    }

    /// Begins it anew, also in an empty world.
    pub(crate) fn begin(self, world: &mut World) {
        (self.0)(world);
    }
}
