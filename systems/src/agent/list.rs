//! Agents are listed in bounded pages, in order of creation.

use agentsvc_components::agent::{Agent, AgentState, OwnedBy};
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::{AgentId, Timestamp};
use bevy_ecs::prelude::{Entity, World};

use super::index::agent_named;
use super::show::asks;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{Index, id_of};
use crate::kernel::page::Page;
use crate::people::{self, Owners};

/// One line of a list (spec 1, Agent summary).
#[derive(Clone, Debug)]
pub struct AgentSummary {
    /// Its id.
    pub id: AgentId,
    /// Its name.
    pub name: Box<str>,
    /// Lifecycle state.
    pub state: AgentState,
    /// When it was spawned.
    pub created_at: Timestamp,
    /// The provider it asks.
    pub provider: Box<str>,
    /// The model it asks.
    pub model: Box<str>,
    /// Untrusted content that its name may come from.
    pub taint: Taint,
}

/// Which agents to list. Empty lists all.
#[derive(Clone, Debug, Default)]
pub struct AgentFilter {
    /// Exactly this name; answered from the index.
    pub name: Option<Box<str>>,
    /// Part of the name, case-insensitive.
    pub matching: Option<String>,
    /// Only with this state.
    pub state: Option<AgentState>,
    /// Only with this tag.
    pub tag: Option<Box<str>>,
    /// Only those that belong to this user.
    pub owner: Option<UserId>,
    /// Only those that belong to no user.
    pub is_shared: bool,
}

/// Reads a page of agents.
#[derive(Clone, Debug, Default)]
pub struct ListAgents {
    /// Which.
    pub filter: AgentFilter,
    /// Go on after this agent; it need not live any more.
    pub after: Option<AgentId>,
    /// At most this many; cut to [`PAGE_ITEMS_MAX`](agentsvc_components::kernel::limit::PAGE_ITEMS_MAX).
    pub limit: usize,
}

command!(read "list_agents" ListAgents => Page<AgentSummary, AgentId>, All, |it, world| Answer::read(page(world, &it)));

fn page(world: &World, command: &ListAgents) -> Page<AgentSummary, AgentId> {
    let mut filter = command.filter.clone();
    filter.owner = people::limit(world).or(filter.owner);
    let (index, filter) = (world.resource::<Index>(), &filter);
    let owners = world.resource::<Owners>();
    // How many others there are is not for a user who sees some.
    let total = match filter.owner {
        Some(user) => owners.count(user),
        None => index.agent_count(),
    };
    if let Some(name) = &filter.name {
        let found = agent_named(world, name).filter(|_| command.after.is_none());
        let items = found.and_then(|entity| matching(world, entity, filter)).into_iter().collect();
        return Page { items, next: None, total };
    }
    let show = |entity| matching(world, entity, filter);
    match filter.owner {
        Some(user) => Page::of(owners.after(user, command.after), command.limit, total, show),
        None => Page::of(index.agents_after(command.after), command.limit, total, show),
    }
}

pub(super) fn matching(world: &World, entity: Entity, filter: &AgentFilter) -> Option<AgentSummary> {
    let agent = world.get::<Agent>(entity)?;
    let manifest = &agent.manifest.manifest;
    let wanted = filter.state.is_none_or(|state| agent.state == state)
        && filter.owner.is_none_or(|user| world.get::<OwnedBy>(entity) == Some(&OwnedBy(user)))
        && !(filter.is_shared && world.get::<OwnedBy>(entity).is_some())
        && filter.tag.as_ref().is_none_or(|tag| manifest.tags.contains(tag))
        && filter.matching.as_ref().is_none_or(|part| agent.name.to_lowercase().contains(&part.to_lowercase()));
    if !wanted {
        return None;
    }
    let (provider, model) = asks(world, &manifest.model);
    let (name, state, created_at) = (agent.name.clone(), agent.state, agent.created_at);
    Some(AgentSummary { id: id_of(world, entity), name, state, created_at, provider, model, taint: agent.taint.own })
}
