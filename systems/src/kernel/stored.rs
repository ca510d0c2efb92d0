//! Waiting for the store. What the world shows by now may be on its way to the disk still; once this is answered it is
//! there, and whoever reads the store finds it.

use bevy_ecs::world::World;

use crate::kernel::command::{Answer, Command, Place};

/// Answered when everything that the world has done before is stored. Changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct AwaitStored;

impl Command for AwaitStored {
    type Reply = ();
    const NAME: &'static str = "await_stored";
    const WRITES: bool = false;
    const PLACE: Place<Self> = Place::All;

    fn run(self, _: &mut World) -> Answer<()> {
        Answer::Stored(())
    }
}
