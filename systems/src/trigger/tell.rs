//! Events from outside the world: for rehearsals and measurements.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::event::Event;

use crate::event::told::Tell;
use crate::kernel::command::{Answer, Command, Place};

/// Lets events happen as if the world had brought them about; triggers see them in this step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TellEvents(pub Vec<Event>);

impl Command for TellEvents {
    type Reply = ();
    const NAME: &'static str = "tell_events";
    const WRITES: bool = true;
    const PLACE: Place<Self> = Place::Root;

    fn run(self, world: &mut World) -> Answer<()> {
        self.0.into_iter().for_each(|event| world.event(event));
        Answer::Stored(())
    }
}
