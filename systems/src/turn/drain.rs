//! The daemon is about to end: no more calls begin, so that those that are out can come back and be settled.

use agentsvc_components::turn::Turn;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use super::tools::ToolLane;
use crate::kernel::command::{Answer, command};
use crate::model::admission::{Admission, Drain};

/// Keeps model calls from going out, and tool calls with the last of them. What does not go out stays as it is stored, and
/// goes out after the next start.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct DrainCalls(pub Drain);

command! {
    write "drain_calls" DrainCalls => (), Root, |DrainCalls(drain), world| {
        world.resource_mut::<Admission>().drain(drain);
        world.resource_mut::<ToolLane>().is_closed = drain == Drain::All;
        Answer::Stored(())
    }
}

/// Must this turn wait for the next start? It leaves its line for good: the world ends soon.
pub(super) fn is_left(world: &World, admission: &Admission, turn: Entity) -> bool {
    admission.drains() == Drain::Fired && world.get::<Turn>(turn).is_some_and(|turn| turn.origin.is_fired())
}
