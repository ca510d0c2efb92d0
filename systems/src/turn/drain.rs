//! The daemon is about to end: no more calls begin, so that those that are out can come back and be settled.

use agentsvc_components::turn::{Origin, Turn};
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use super::tool_lane::ToolLane;
use crate::kernel::command::{Answer, Command, Place, Room};
use crate::model::admission::{Admission, Drain};

/// Keeps model calls from going out, and tool calls with the last of them. What does not go out stays as it is stored, and
/// goes out after the next start.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct DrainCalls(pub Drain);

impl Command for DrainCalls {
    type Reply = ();
    const NAME: &'static str = "drain_calls";
    const WRITES: bool = true;
    const PLACE: Place<Self> = Place::Root;
    /// A stop on a full disk settles what is out, too.
    const ROOM: Room = Room::None;

    fn run(self, world: &mut World) -> Answer<()> {
        world.resource_mut::<Admission>().drain(self.0);
        world.resource_mut::<ToolLane>().is_closed = self.0 == Drain::All;
        Answer::Now(Ok(()))
    }
}

/// Must this turn wait for the next start? It leaves its line for good: the world ends soon.
pub(super) fn is_left(world: &World, admission: &Admission, turn: Entity) -> bool {
    // Somebody may wait for a run of a workflow.
    let is_left = |origin| matches!(origin, Origin::Trigger { .. } | Origin::Schedule { .. });
    admission.drains() == Drain::Fired && world.get::<Turn>(turn).is_some_and(|turn| is_left(turn.origin))
}
