//! Whom agents belong to. An agent that a user's key makes belongs to that user, and one that an agent spawns to the user of
//! that agent.

use agentsvc_components::agent::OwnedBy;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::manifest::{Manifest, ModelChoice};
use agentsvc_components::{Actor, AgentId, Refusal, RefusalKind};
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Owning, audit_kinds, owners};
use crate::audit::Audit;
use crate::kernel::acting::Acting;
use crate::kernel::command::{Answer, command};
use crate::kernel::index;
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::{check, react};
use crate::people;

/// To whom an agent belongs that is made now.
pub(super) fn of_acting(world: &World) -> Option<OwnedBy> {
    match world.resource::<Acting>().0 {
        Actor::Key { user, .. } => user.map(OwnedBy),
        Actor::Agent { agent, .. } => index::agent(world, agent).ok().and_then(|at| world.get::<OwnedBy>(at).copied()),
        Actor::System | Actor::Api | Actor::Client | Actor::Hook | Actor::Peer | Actor::Chat => None,
    }
}

/// Refuses an agent that whoever acts must not know of.
pub(crate) fn check_reach(world: &World, target: Entity) -> Result<(), Refusal> {
    if people::reaches(world, target) {
        return Ok(());
    }
    Err(Refusal::not_found("agent", index::id_of::<AgentId>(world, target)))
}

/// The agent `id`, if it lives and whoever acts may know of it.
pub(crate) fn reached(world: &World, id: AgentId) -> Result<Entity, Refusal> {
    let agent = index::agent(world, id)?;
    check_reach(world, agent).map(|()| agent)
}

/// Refuses MCP servers that no admin gave: a user with a limited role keeps those of `before`, and adds none. What an agent
/// spawns is held to the servers of that agent.
pub(super) fn check_servers(world: &World, before: &[Box<str>], now: &[Box<str>]) -> Result<(), Refusal> {
    let is_key = matches!(world.resource::<Acting>().0, Actor::Key { .. });
    match now.iter().find(|server| is_key && is_limited(world) && !before.contains(server)) {
        Some(server) => {
            let text = format!("mcp_servers: an admin has to give the agent the MCP server {server:?}");
            Err(Refusal { field: Some("mcp_servers".to_owned()), ..Refusal::new(RefusalKind::Forbidden, text) })
        }
        None => Ok(()),
    }
}

/// Refuses endpoints of models to a user with a limited role: the daemon reaches hosts that the user does not. What an agent
/// spawns is held to the endpoints of that agent.
pub(super) fn check_endpoints(world: &World, now: &Manifest) -> Result<(), Refusal> {
    let is_key = matches!(world.resource::<Acting>().0, Actor::Key { .. });
    let names = |choice: &ModelChoice| choice.base_url.is_some() || choice.api_key_env.is_some();
    let field = if names(&now.model) { "model" } else { "fallback_models" };
    if !(is_key && is_limited(world) && (names(&now.model) || now.fallback_models.iter().any(names))) {
        return Ok(());
    }
    let text = format!("{field}: an admin has to set base_url and api_key_env");
    Err(Refusal { field: Some(field.to_owned()), ..Refusal::new(RefusalKind::Forbidden, text) })
}

/// Does whoever acts know of what belongs to one user only?
pub(crate) fn is_limited(world: &World) -> bool {
    people::limit(world).is_some()
}

/// Refuses what is about the whole installation to those who know of what belongs to one user only.
pub(crate) fn check_shared(world: &World, what: &str) -> Result<(), Refusal> {
    if !is_limited(world) {
        return Ok(());
    }
    Err(Refusal::new(RefusalKind::Forbidden, format!("an agent that belongs to a user cannot use {what}")))
}

/// Tools that use what belongs to the whole installation, by what their names begin with: external agents, and skills that
/// others have too.
const SHARED_TOOLS: &[&str] = &["a2a_", "skill_evolve_"];

/// Why an agent may not call a tool, where it belongs to a user who may not do the same.
pub(crate) fn denied_tool(world: &World, agent: Entity, tool: &str) -> Option<String> {
    people::limit_of(world, agent)?;
    let is_shared = SHARED_TOOLS.iter().any(|start| tool.starts_with(start));
    is_shared.then(|| format!("Refused: an agent that belongs to a user cannot use {tool}."))
}

/// Gives an agent to a user, or to the installation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SetOwner {
    /// Which.
    pub agent: AgentId,
    /// To whom.
    pub user: Option<UserId>,
}

/// An agent belongs to another user from here on, or to none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnerChanged {
    /// Which.
    pub(crate) agent: AgentId,
    /// Whom it belongs to, and whom before.
    pub(crate) change: OwnerChange,
}

/// Whom an agent belongs to after a [`SetOwner`], and whom before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerChange {
    /// Whom it belonged to.
    pub before: Option<UserId>,
    /// Whom it belongs to.
    pub now: Option<UserId>,
}

command!(last_write "set_owner" SetOwner => OwnerChange, Id(|it| it.agent.0), |it, world| Answer::stored(set(world, it)));

fn set(world: &mut World, SetOwner { agent, user }: SetOwner) -> Result<OwnerChange, Refusal> {
    people::check_acting_key(world)?;
    let entity = index::agent(world, agent)?;
    let before = world.get::<OwnedBy>(entity).map(|by| by.0);
    match user {
        Some(user) => {
            owners::admit(world, Some(OwnedBy(user)), usize::from(before != Some(user)))?;
            check(world, &Owning { agent: entity })?;
            world.entity_mut(entity).insert(OwnedBy(user))
        }
        None => world.entity_mut(entity).remove::<OwnedBy>(),
    };
    world.mark(entity);
    world.audit(audit_kinds::AGENT_OWNER_CHANGED, agent, json!({ "user": user }));
    let change = OwnerChange { before, now: user };
    react(world, &OwnerChanged { agent, change });
    Ok(change)
}

/// Says whether an agent belongs to a user.
#[derive(Clone, Copy, Debug)]
pub struct OwnsAgent {
    /// Which.
    pub agent: AgentId,
    /// Whom.
    pub user: UserId,
}

command! {
    quick "owns_agent" OwnsAgent => bool, Id(|it| it.agent.0), |it, world| {
        let owner = |at| world.get::<OwnedBy>(at) == Some(&OwnedBy(it.user));
        Answer::Now(index::agent(world, it.agent).map(owner))
    }
}
