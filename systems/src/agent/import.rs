//! An agent is taken over from another program, and known by where it came from.

use std::collections::BTreeSet;

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::{Resource, World};
use bevy_ecs::world::DeferredWorld;
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::{Agent, ImportedFrom};
use agentsvc_components::{AgentId, Refusal};

use super::spawn::spawn;
use super::{SpawnAgent, Spawned};
use crate::kernel::check::Faults;
use crate::kernel::command::{Answer, command};
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

command! {
    read "find_imported" FindImported => Option<Imported>, All, |it, world| {
        let Some(agent) = world.resource::<Origins>().find(&it.0) else { return Answer::read(None) };
        let found = index::agent(world, agent).ok().and_then(|entity| {
            let (name, from) = (world.get::<Agent>(entity)?.name.clone(), world.get::<ImportedFrom>(entity)?);
            Some(Imported { agent, name, same_text: from.text == it.0.text })
        });
        Answer::read(found)
    }
}

/// The agents that were taken over, by the places and the texts that they came from.
#[derive(Resource, Debug, Default, PartialEq, Eq)]
struct Origins {
    places: BTreeSet<([u8; 32], AgentId)>,
    texts: BTreeSet<([u8; 32], AgentId)>,
}

impl Origins {
    fn find(&self, from: &ImportedFrom) -> Option<AgentId> {
        let first = |of: &BTreeSet<([u8; 32], AgentId)>, key: [u8; 32]| {
            let least = (key, AgentId(uuid::Uuid::nil()));
            of.range(least..).next().filter(|(found, _)| *found == key).map(|(_, id)| *id)
        };
        first(&self.places, from.place).or_else(|| first(&self.texts, from.text))
    }

    fn insert(&mut self, from: &ImportedFrom, id: AgentId) {
        self.places.insert((from.place, id));
        self.texts.insert((from.text, id));
    }
}

/// Registers the hooks that keep the index.
pub(super) fn install(world: &mut World) {
    world.init_resource::<Origins>();
    world.register_component_hooks::<ImportedFrom>().on_insert(inserted).on_remove(removed);
}

fn origin(world: &DeferredWorld<'_>, at: &HookContext) -> Option<(ImportedFrom, AgentId)> {
    Some((*world.get(at.entity)?, *world.get(at.entity)?))
}

fn inserted(mut world: DeferredWorld<'_>, at: HookContext) {
    if let Some((from, id)) = origin(&world, &at) {
        world.resource_mut::<Origins>().insert(&from, id);
    }
}

fn removed(mut world: DeferredWorld<'_>, at: HookContext) {
    if let Some((from, id)) = origin(&world, &at) {
        let mut origins = world.resource_mut::<Origins>();
        origins.places.remove(&(from.place, id));
        origins.texts.remove(&(from.text, id));
    }
}

/// Says where the index does not hold what a full scan finds.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let mut all = world.query::<(&AgentId, &ImportedFrom)>();
    let world = &*world;
    let mut scan = Origins::default();
    all.iter(world).for_each(|(id, from)| scan.insert(from, *id));
    faults.same("imported agents", world.resource::<Origins>(), &scan);
}
