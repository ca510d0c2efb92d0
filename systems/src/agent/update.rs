//! An agent's manifest or name changes while it lives.

use crate::agent::error_codes;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::{Agent, AgentMode};
use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::{Manifest, ModelChoice, SharedManifest};
use agentsvc_components::{AgentId, Refusal, RefusalKind};

use super::changes::Changes;
use super::manifests::Manifests;
use super::spawn::name_free;
use super::{AgentView, owner};
use crate::agent::manifests as interner;
use crate::config::Settings;
use crate::event::told::Tell;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, Index};
use crate::kernel::outbox::Emit;
use crate::kernel::patch::set;
use crate::manifest;

/// The fields to change; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentPatch {
    /// A new name; checked by the caller, unique among live agents.
    pub name: Option<Box<str>>,
    /// `description`.
    pub description: Option<Box<str>>,
    /// `system_prompt`.
    pub system_prompt: Option<Box<str>>,
    /// `tags`.
    pub tags: Option<Vec<Box<str>>>,
    /// The provider; refused while the agent is Stable.
    pub provider: Option<Box<str>>,
    /// The model; refused while the agent is Stable.
    pub model: Option<Box<str>>,
    /// `[model] temperature`; `Some(None)` clears it.
    #[serde(with = "crate::kernel::patch")]
    pub temperature: Option<Option<f32>>,
    /// `[model] max_tokens`; `Some(None)` clears it.
    #[serde(with = "crate::kernel::patch")]
    pub max_tokens: Option<Option<u32>>,
    /// `max_history_messages`; `Some(None)` clears it.
    #[serde(with = "crate::kernel::patch")]
    pub max_history_messages: Option<Option<u32>>,
    /// Tools granted.
    pub tools: Option<Vec<Box<str>>>,
    /// `[capabilities] network`: hosts that it may reach.
    #[serde(default)]
    pub network: Option<Vec<Box<str>>>,
    /// `[capabilities] shell`: commands that it may run.
    #[serde(default)]
    pub shell: Option<Vec<Box<str>>>,
    /// `[capabilities] agent_spawn`.
    #[serde(default)]
    pub agent_spawn: Option<bool>,
    /// `[capabilities] file_system`.
    #[serde(default)]
    pub file_system: Option<bool>,
    /// Only these tools.
    pub tool_allowlist: Option<Vec<Box<str>>>,
    /// Never these tools.
    pub tool_blocklist: Option<Vec<Box<str>>>,
    /// Skills; refused while the agent is Stable.
    pub skills: Option<Vec<Box<str>>>,
    /// MCP servers.
    pub mcp_servers: Option<Vec<Box<str>>>,
    /// Identity, avatar.
    pub avatar: Option<Box<str>>,
    /// Identity, persona.
    pub persona: Option<Box<str>>,
}

/// Changes some fields of an agent. All of them are taken, or none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdateAgent {
    /// Whom.
    pub agent: AgentId,
    /// What.
    pub patch: AgentPatch,
}

command! {
    /// The agent as it is now.
    write "update_agent" UpdateAgent => AgentView, Id(|it| it.agent.0), |it, world| Answer::stored(update(world, it))
}

fn update(world: &mut World, command: UpdateAgent) -> Result<AgentView, Refusal> {
    let entity = index::agent(world, command.agent)?;
    let missing = || Refusal::not_found("agent", command.agent);
    let agent = world.get::<Agent>(entity).ok_or_else(missing)?;
    let patch = command.patch;
    if agent.mode == AgentMode::Stable {
        refuse_pinned(&patch)?;
    }
    if let Some(name) = &patch.name {
        name_free(world, name, Some(entity))?;
    }
    if let Some(servers) = &patch.mcp_servers {
        owner::check_servers(world, &agent.manifest.manifest.mcp_servers, servers)?;
    }
    let name = patch.name.clone();
    let changes = Changes::of(&patch);
    let patch = AgentPatch { provider: provider_of(world, &agent.manifest.manifest.model, &patch), ..patch };
    let manifest = patched(&agent.manifest.manifest, patch);
    admit(world, &agent.manifest, &manifest)?;
    let old_name = agent.name.clone();
    set_manifest(world, entity, manifest);
    if let Some(name) = name.filter(|name| *name != old_name) {
        let mut index = world.resource_mut::<Index>();
        index.remove_name(&old_name, entity);
        index.insert_name(&name, entity);
        if let Some(mut agent) = world.get_mut::<Agent>(entity) {
            agent.name = name;
        }
    }
    changes.audit(world, command.agent);
    world.event(Event::AgentUpdated { agent: command.agent });
    AgentView::of(world, entity).ok_or_else(missing)
}

/// Gives an agent another system prompt.
pub(crate) fn set_system_prompt(world: &mut World, agent: AgentId, text: &str) -> Result<(), Refusal> {
    let patch = AgentPatch { system_prompt: Some(text.into()), ..AgentPatch::default() };
    update(world, UpdateAgent { agent, patch }).map(drop)
}

/// Refuses a manifest that has become too long, or for which there is no room.
fn admit(world: &World, old: &SharedManifest, new: &Manifest) -> Result<(), Refusal> {
    let (was, bytes, most) = (old.manifest.bytes(), new.bytes(), limit::MANIFEST_BYTES_MAX);
    if bytes > most && bytes > was {
        let text = format!("the texts of the manifest would have {bytes} bytes; the limit is {most}");
        return Err(Refusal::new(RefusalKind::BadRequest, text));
    }
    world.resource::<Manifests>().admit(new, manifest::hash(new), Some(old.hash))
}

fn refuse_pinned(patch: &AgentPatch) -> Result<(), Refusal> {
    let pinned =
        [("model", patch.model.is_some()), ("provider", patch.provider.is_some()), ("skills", patch.skills.is_some())];
    match pinned.iter().find(|(_, sent)| *sent) {
        Some((field, _)) => {
            let text = format!("{field} is pinned while the agent's mode is Stable; set the mode to Normal first");
            Err(Refusal { field: Some((*field).to_owned()), ..Refusal::conflict(text) }
                .with_code(error_codes::AGENT_STABLE))
        }
        None => Ok(()),
    }
}

/// The provider to set. A model that is named by an alias brings its own, unless the agent leaves the provider to the daemon.
fn provider_of(world: &World, old: &ModelChoice, patch: &AgentPatch) -> Option<Box<str>> {
    let of_alias = |model: &str| {
        let name = world.resource::<Settings>().aliases.get(model)?;
        (!old.provider.is_empty()).then(|| name.provider.clone())
    };
    patch.provider.clone().or_else(|| of_alias(patch.model.as_deref()?))
}

fn patched(old: &Manifest, patch: AgentPatch) -> Manifest {
    let mut new = old.clone();
    set(&mut new.description, patch.description);
    set(&mut new.system_prompt, patch.system_prompt);
    set(&mut new.tags, patch.tags);
    if patch.provider.as_ref().is_some_and(|provider| *provider != new.model.provider) {
        // An endpoint and a key belong to the provider they were written for.
        (new.model.base_url, new.model.api_key_env) = (None, None);
    }
    set(&mut new.model.provider, patch.provider);
    set(&mut new.model.model, patch.model);
    set(&mut new.model.temperature, patch.temperature);
    set(&mut new.model.max_tokens, patch.max_tokens);
    set(&mut new.max_history_messages, patch.max_history_messages);
    set(&mut new.capabilities.tools, patch.tools);
    set(&mut new.capabilities.network, patch.network);
    set(&mut new.capabilities.shell, patch.shell);
    set(&mut new.capabilities.agent_spawn, patch.agent_spawn.map(Some));
    set(&mut new.capabilities.file_system, patch.file_system.map(Some));
    set(&mut new.tool_allowlist, patch.tool_allowlist);
    set(&mut new.tool_blocklist, patch.tool_blocklist);
    set(&mut new.skills, patch.skills);
    set(&mut new.mcp_servers, patch.mcp_servers);
    set(&mut new.identity.avatar, patch.avatar);
    set(&mut new.identity.persona, patch.persona);
    new
}

/// Gives an agent another manifest; the old one goes when nobody else has it.
pub(crate) fn set_manifest(world: &mut World, entity: Entity, manifest: Manifest) {
    let now = world.resource::<Now>().0;
    let hash = manifest::hash(&manifest);
    let shared = interner::intern(world, manifest, hash);
    let Some(mut agent) = world.get_mut::<Agent>(entity) else { return };
    let old = std::mem::replace(&mut agent.manifest, shared).hash;
    agent.updated_at = now;
    world.mark(entity);
    interner::release(world, old);
}
