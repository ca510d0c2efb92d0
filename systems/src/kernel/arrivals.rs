//! What came back from the outside and is settled in the next round. Bounded by the effects that are out.

use std::collections::VecDeque;

use bevy_ecs::prelude::{Resource, World};

use agentsvc_components::kernel::outcome::{AnyOutcome, Outcome};

use super::inputs::table;

/// Outcomes in the order in which they came.
#[derive(Resource, Default)]
pub(crate) struct Arrived(pub(crate) VecDeque<AnyOutcome>);

/// What an outcome does in the world.
pub trait Settle: Outcome {
    /// Settles it. One that nothing waits for any more is dropped.
    fn settle(self, world: &mut World);
}

/// Settles every outcome that came in.
// &mut World: outcomes of any domain are settled in it.
pub(crate) fn settle(world: &mut World) {
    while let Some(outcome) = world.resource_mut::<Arrived>().0.pop_front() {
        table::settle(world, outcome);
    }
}
