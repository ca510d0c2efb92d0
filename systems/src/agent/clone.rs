//! An agent is cloned: same manifest, fresh session.

use crate::agent::audit_kinds;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, Refusal};
use serde_json::json;

use super::spawn::{name_free, spawn};
use super::{SpawnAgent, Spawned};
use crate::audit::Audit;
use crate::kernel::command::{Answer, command};
use crate::kernel::index;

/// Clones an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CloneAgent {
    /// Of whom.
    pub agent: AgentId,
    /// The clone's name; `None` is `<name>-copy`, then `<name>-copy-2` and so on.
    pub name: Option<Box<str>>,
    /// The original's manifest text, which never changes after its birth.
    pub text: String,
}

command!(write "clone_agent" CloneAgent => Spawned, Id(|it| it.agent.0), |it, world| Answer::stored(clone(world, it)));

fn clone(world: &mut World, command: CloneAgent) -> Result<Spawned, Refusal> {
    let entity = index::agent(world, command.agent)?;
    let original = world.get::<Agent>(entity).ok_or_else(|| Refusal::not_found("agent", command.agent))?;
    let (manifest, own) = (original.manifest.clone(), original.taint.own);
    let name = match command.name {
        Some(name) => name,
        None => free_name(world, &original.name)?,
    };
    let copy = SpawnAgent { name, manifest: manifest.manifest.clone(), hash: manifest.hash, text: command.text };
    let spawned = spawn(world, copy, None)?;
    let entity = index::agent(world, spawned.agent)?;
    if let Some(mut agent) = world.get_mut::<Agent>(entity) {
        agent.taint.own = own;
    }
    world.audit(audit_kinds::AGENT_CLONED, spawned.agent, json!({ "of": command.agent }));
    Ok(spawned)
}

fn free_name(world: &World, original: &str) -> Result<Box<str>, Refusal> {
    let first = format!("{original}-copy");
    let mut tries = std::iter::once(first.clone()).chain((2..10_000).map(|n| format!("{first}-{n}")));
    let free = tries.find(|name| name_free(world, name, None).is_ok());
    match free.filter(|name| name.len() <= limit::NAME_BYTES_MAX) {
        Some(name) => Ok(name.into()),
        None => Err(Refusal::bad_field("name", "cannot choose a default name; send a name")),
    }
}
