//! An agent is taken over from another program, and known by where it came from.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::{Agent, ImportedFrom};
use agentsvc_components::{AgentId, Refusal};

use super::spawn::spawn;
use super::{SpawnAgent, Spawned};
use crate::kernel::command::{Answer, Command, Place, command};
use crate::kernel::index;
use crate::kernel::outbox::Emit;

/// Spawns an agent that was found in the home of another program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportAgent {
    /// The agent.
    pub agent: SpawnAgent,
    /// Where it was found.
    pub from: ImportedFrom,
}

command! {
    write "import_agent" ImportAgent => Spawned, Name(|it| &it.agent.name), |it, world|
        Answer::stored(import(world, it))
}

fn import(world: &mut World, command: ImportAgent) -> Result<Spawned, Refusal> {
    let spawned = spawn(world, command.agent, None)?;
    let entity = index::agent(world, spawned.agent)?;
    world.entity_mut(entity).insert(command.from);
    world.mark(entity);
    Ok(spawned)
}

/// An agent that was taken over before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Its id.
    pub agent: AgentId,
    /// What it is called now.
    pub name: Box<str>,
    /// What stands where it came from is what stood there then.
    pub same_text: bool,
}

/// Looks for the agent that came from a place, or else for one that came from another with the same text, as after a home
/// was moved. Neither its name nor its manifest counts: both may have changed since.
#[derive(Clone, Copy, Debug)]
pub struct FindImported(pub ImportedFrom);

impl Command for FindImported {
    type Reply = Option<Imported>;
    const NAME: &'static str = "find_imported";
    const WRITES: bool = false;
    const PLACE: Place<Self> = Place::All;

    fn run(self, world: &mut World) -> Answer<Self::Reply> {
        let mut all = world.query::<(&AgentId, &Agent, &ImportedFrom)>();
        let world = &*world;
        let fits = all.iter(world).filter(|(_, _, from)| from.place == self.0.place || from.text == self.0.text);
        let best = fits.min_by_key(|(id, _, from)| (from.place != self.0.place, **id));
        Answer::read(best.map(|(id, agent, from)| Imported {
            agent: *id,
            name: agent.name.clone(),
            same_text: from.text == self.0.text,
        }))
    }
}
