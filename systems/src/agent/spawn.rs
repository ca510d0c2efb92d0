//! An agent is born, with its first session.

use crate::agent::audit_kinds;
use crate::agent::error_codes;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::{Agent, AgentMode, AgentState};
use agentsvc_components::event::Event;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::kernel::taint::AgentTaint;
use agentsvc_components::manifest::{Manifest, ManifestHash};
use agentsvc_components::session::Session;
use agentsvc_components::{AgentId, Refusal, SessionId, TurnId};

use serde_json::json;

use super::index::agent_named;
use super::manifests::Manifests;
use super::{AgentSpawned, Spawning, limits, owner, owners};
use crate::agent::manifests as interner;
use crate::audit::Audit;
use crate::event::told::Tell;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::id_generator::mint;
use crate::kernel::index::{Index, id_of};
use crate::kernel::outbox::Emit;
use crate::kernel::quota::{Quota, Used};
use crate::kernel::reaction::{check, react};
use crate::kernel::record;
use crate::manifest::{schedules_of, triggers_of};
use crate::{session, taint};

/// Spawns an agent from a manifest that was parsed outside the world.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpawnAgent {
    /// Unique among live agents.
    pub name: Box<str>,
    /// The typed manifest.
    pub manifest: Manifest,
    /// Its hash.
    pub hash: ManifestHash,
    /// The manifest as written; kept whole.
    pub text: String,
}

/// A new agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawned {
    /// Its id.
    pub agent: AgentId,
    /// Its name.
    pub name: Box<str>,
    /// Its first session.
    pub session: SessionId,
}

command! {
    write "spawn_agent" SpawnAgent => Spawned, Name(|it| &it.name), |it, world| {
        Answer::stored(spawn_new(world, it))
    }
}

/// Spawns an agent of a new manifest, which brings no MCP servers that whoever acts may not give.
fn spawn_new(world: &mut World, command: SpawnAgent) -> Result<Spawned, Refusal> {
    owner::check_servers(world, &[], &command.manifest.mcp_servers)?;
    owner::check_endpoints(world, &command.manifest)?;
    spawn(world, command, None)
}

/// Spawns several agents in one step; each stands or falls alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpawnAgents(pub Vec<SpawnAgent>);

command! {
    /// One result per item, in order.
    write "spawn_agents" SpawnAgents => Vec<Result<Spawned, Refusal>>, All, |SpawnAgents(it), world|
        Answer::Stored(it.into_iter().map(|item| spawn_new(world, item)).collect())
}

/// Spawns an agent; `by` is the turn that does, if one does.
pub(super) fn spawn(world: &mut World, command: SpawnAgent, by: Option<TurnId>) -> Result<Spawned, Refusal> {
    name_free(world, &command.name, None)?;
    check(world, &spawning([&command.manifest]))?;
    admit(world, std::slice::from_ref(&command))?;
    Ok(place(world, command, by))
}

/// Refuses agents that belong together where not all of them can be spawned.
pub(crate) fn check_together(world: &World, commands: &[SpawnAgent]) -> Result<(), Refusal> {
    for (at, command) in commands.iter().enumerate() {
        name_free(world, &command.name, None)?;
        if commands[..at].iter().any(|other| other.name == command.name) {
            let text = format!("two agents would be called {:?}", command.name);
            return Err(Refusal { field: Some("name".to_owned()), ..Refusal::conflict(text) });
        }
    }
    check(world, &spawning(commands.iter().map(|command| &command.manifest)))?;
    admit(world, commands)
}

/// Spawns agents that belong together, all or none.
pub(crate) fn spawn_all(world: &mut World, commands: Vec<SpawnAgent>) -> Result<Vec<Spawned>, Refusal> {
    check_together(world, &commands)?;
    Ok(commands.into_iter().map(|command| place(world, command, None)).collect())
}

/// What the manifests bring that others must have room for.
fn spawning<'a>(manifests: impl IntoIterator<Item = &'a Manifest>) -> Spawning {
    let mut all = Spawning { triggers: Vec::new(), wakes: Vec::new() };
    for manifest in manifests {
        all.triggers.extend(triggers_of(manifest));
        all.wakes.extend(schedules_of(manifest));
    }
    all
}

/// Brings an agent into the world for which there is room.
fn place(world: &mut World, command: SpawnAgent, by: Option<TurnId>) -> Spawned {
    let Spawning { triggers, wakes } = spawning([&command.manifest]);
    let now = world.resource::<Now>().0;
    let id: AgentId = mint(world, Slot::of_name(&command.name));
    let manifest = interner::intern(world, command.manifest, command.hash);
    let entity = world.spawn(id).id();
    let current = session::spawn(world, entity, None, None);
    world.resource_mut::<Index>().insert_name(&command.name, entity);
    let taint = AgentTaint { own: taint::acting(world), ..AgentTaint::default() };
    world.entity_mut(entity).insert(Agent {
        name: command.name.clone(),
        manifest,
        current,
        created_at: now,
        updated_at: now,
        input_tokens: 0,
        output_tokens: 0,
        state: AgentState::Running,
        mode: AgentMode::Normal,
        taint,
        stored: 0,
    });
    if let Some(owner) = owner::of_acting(world) {
        world.entity_mut(entity).insert(owner);
    }
    world.op(record::put_manifest_text(id, &command.text));
    world.mark(entity);
    world.audit(audit_kinds::AGENT_SPAWNED, id, json!({ "name": command.name }));
    world.event(Event::AgentSpawned { agent: id, name: command.name.to_string(), by });
    // Behind its own birth, which is not for them.
    react(world, &AgentSpawned { agent: entity, triggers, wakes });
    Spawned { agent: id, name: command.name, session: id_of(world, current) }
}

/// What agents may take beside their manifests.
const QUOTA: Quota =
    Quota { count: limits::AGENTS_MAX, bytes: usize::MAX, what: "agents", code: error_codes::AGENTS_FULL };

/// Refuses agents for which there is no room.
fn admit(world: &World, commands: &[SpawnAgent]) -> Result<(), Refusal> {
    let used = Used { count: world.resource::<Index>().agent_count(), bytes: 0 };
    QUOTA.admit(used, commands.len(), 0)?;
    owners::admit(world, owner::of_acting(world), commands.len())?;
    session::admit_first(world, commands.len())?;
    world.resource::<Manifests>().admit_all(commands.iter().map(|command| (&command.manifest, command.hash)))
}

/// Refuses a name that another live agent has.
pub(super) fn name_free(world: &World, name: &str, except: Option<Entity>) -> Result<(), Refusal> {
    match agent_named(world, name) {
        Some(other) if Some(other) != except => {
            let refusal = Refusal::conflict(format!(
                "agent {name:?} already exists; choose another name or delete it \
                first"
            ));
            Err(Refusal { field: Some("name".to_owned()), ..refusal }.with_code(error_codes::AGENT_NAME_TAKEN))
        }
        _ => Ok(()),
    }
}

/// The session an agent talks in.
pub(super) fn current(world: &World, agent: &Agent) -> (SessionId, u32) {
    let count = world.get::<Session>(agent.current).map_or(0, |session| session.message_count);
    (id_of(world, agent.current), count)
}
