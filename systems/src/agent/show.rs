//! One agent is read.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::{Agent, AgentMode, AgentState, OwnedBy, SpawnedBy};
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::manifest::{ModelChoice, SharedManifest};
use agentsvc_components::usage::Scope;
use agentsvc_components::{AgentId, Micros, Refusal, SessionId, Timestamp};

use super::index::agent_named;
use super::spawn::current;
use super::{family_of, holder_of};
use crate::config::Settings;
use crate::config::memory::MemorySettings;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, id_of};
use crate::people;
use crate::usage::Rollups;

/// What the world knows of an agent.
#[derive(Clone, Debug)]
pub struct AgentView {
    /// Its id.
    pub id: AgentId,
    /// Its name.
    pub name: Box<str>,
    /// Lifecycle state.
    pub state: AgentState,
    /// Pinned or not.
    pub mode: AgentMode,
    /// When it was spawned.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Its current session.
    pub session: SessionId,
    /// Messages of the current session.
    pub message_count: u32,
    /// Its manifest.
    pub manifest: SharedManifest,
    /// The provider it asks, defaults filled in.
    pub provider: Box<str>,
    /// The model it asks, defaults filled in.
    pub model: Box<str>,
    /// What its memory does with its turns, defaults filled in.
    pub memory: MemorySettings,
    /// Prompt tokens so far.
    pub input_tokens: u64,
    /// Answer tokens so far.
    pub output_tokens: u64,
    /// What its model calls cost so far.
    pub cost: Micros,
    /// Untrusted content that its name and instructions may come from.
    pub taint: Taint,
    /// The user whom it belongs to, if it does.
    pub owner: Option<UserId>,
    /// The agent at the top of its family, which a client created: who shares its quotas. It may be gone already.
    pub family: AgentId,
    /// Whose share of a pool what belongs to it takes.
    pub holder: Holder,
}

impl AgentView {
    pub(crate) fn of(world: &World, entity: Entity) -> Option<Self> {
        let agent = world.get::<Agent>(entity)?;
        let (session, message_count) = current(world, agent);
        let (provider, model) = asks(world, &agent.manifest.manifest.model);
        Some(Self {
            id: id_of(world, entity),
            name: agent.name.clone(),
            state: agent.state,
            mode: agent.mode,
            created_at: agent.created_at,
            updated_at: agent.updated_at,
            session,
            message_count,
            manifest: agent.manifest.clone(),
            provider,
            model,
            memory: world.resource::<Settings>().memory.of(&agent.manifest.manifest),
            input_tokens: agent.input_tokens,
            output_tokens: agent.output_tokens,
            cost: world.resource::<Rollups>().total(Scope::Agent(id_of(world, entity))).cost,
            taint: agent.taint.own,
            owner: world.get::<OwnedBy>(entity).map(|by| by.0),
            family: family_of(world, entity),
            holder: holder_of(world, entity),
        })
    }
}

/// Provider and model that `choice` means now.
pub(super) fn asks(world: &World, choice: &ModelChoice) -> (Box<str>, Box<str>) {
    let settings = world.resource::<Settings>();
    (settings.provider_of(choice).into(), settings.model_of(choice).into())
}

/// Reads an agent by id.
#[derive(Clone, Copy, Debug)]
pub struct GetAgent(pub AgentId);

command! {
    quick "get_agent" GetAgent => AgentView, Id(|it| it.0.0), |it, world| {
        let missing = || Refusal::not_found("agent", it.0);
        Answer::Now(index::agent(world, it.0).and_then(|e| AgentView::of(world, e).ok_or_else(missing)))
    }
}

/// The agent that `text` means: an id, or a name.
pub(crate) fn named(world: &World, text: &str) -> Result<Entity, Refusal> {
    if let Ok(id) = text.parse::<AgentId>() {
        return index::agent(world, id);
    }
    agent_named(world, text).ok_or_else(|| Refusal::not_found("agent", text))
}

/// The agent that `text` means, if whoever acts may know of it. A refusal names what was asked for, and never the id of another's.
pub(crate) fn reached_as(world: &World, text: &str) -> Result<Entity, Refusal> {
    let found = named(world, text).ok().filter(|agent| people::reaches(world, *agent));
    found.ok_or_else(|| Refusal::not_found("agent", text))
}

/// The agent that a name means which was written down before, in the configuration, a workflow or a file: none that belongs to a
/// user with a limited role, and none that another agent has spawned. Those can give an agent any name that is free.
pub(crate) fn shared_agent_named(world: &World, name: &str) -> Option<Entity> {
    agent_named(world, name).filter(|agent| is_shared(world, *agent))
}

/// Does the agent belong to nobody with a limited role, and was it made by a person?
pub(crate) fn is_shared(world: &World, agent: Entity) -> bool {
    world.get::<SpawnedBy>(agent).is_none() && people::limit_of(world, agent).is_none()
}

/// Reads an agent by name, as far as whoever asks may know of it.
#[derive(Clone, Debug)]
pub struct FindAgent(pub Box<str>);

command! {
    quick "find_agent" FindAgent => AgentView, Name(|it| &it.0), |it, world| {
        let found = agent_named(world, &it.0).filter(|agent| people::reaches(world, *agent));
        let view = found.and_then(|entity| AgentView::of(world, entity));
        Answer::Now(view.ok_or_else(|| Refusal::not_found("agent", &it.0)))
    }
}

/// Reads the agent that a name means which was written down before: none of a user with a limited role.
#[derive(Clone, Debug)]
pub struct FindSharedAgent(pub Box<str>);

command! {
    quick "find_shared_agent" FindSharedAgent => AgentView, Name(|it| &it.0), |it, world| {
        let view = shared_agent_named(world, &it.0).and_then(|entity| AgentView::of(world, entity));
        Answer::Now(view.ok_or_else(|| Refusal::not_found("agent", &it.0)))
    }
}
