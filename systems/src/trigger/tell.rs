//! Events from outside the world: for rehearsals and measurements.

use serde::{Deserialize, Serialize};

use agentsvc_components::event::Event;

use crate::event::told::Tell;
use crate::kernel::command::{Answer, command};

/// Lets events happen as if the world had brought them about; triggers see them in this step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TellEvents(pub Vec<Event>);

command! {
    write "tell_events" TellEvents => (), Root, |it, world| {
        it.0.into_iter().for_each(|event| world.event(event));
        Answer::Stored(())
    }
}
