//! Agents are listed in bounded pages, in order of creation.

use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, Timestamp};
use bevy_ecs::prelude::{Entity, World};

use super::show::asks;
use crate::kernel::command::{Answer, Command};
use crate::kernel::index;
use crate::kernel::index::{Index, id_of};
use crate::kernel::page::Page;

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
}

/// Reads a page of agents.
#[derive(Clone, Debug, Default)]
pub struct ListAgents {
    /// Which.
    pub filter: AgentFilter,
    /// Go on after this agent; it need not live any more.
    pub after: Option<AgentId>,
    /// At most this many; cut to [`limit::PAGE_ITEMS_MAX`].
    pub limit: usize,
}

impl Command for ListAgents {
    type Reply = Page<AgentSummary, AgentId>;
    const NAME: &'static str = "list_agents";
    const WRITES: bool = false;

    fn run(self, world: &mut World) -> Answer<Page<AgentSummary, AgentId>> {
        Answer::read(page(world, &self))
    }
}

fn page(world: &World, command: &ListAgents) -> Page<AgentSummary, AgentId> {
    let index = world.resource::<Index>();
    let mut page = Page { items: Vec::new(), next: None, total: index.agent_count() };
    if let Some(name) = &command.filter.name {
        let found = index::agent_named(world, name).filter(|_| command.after.is_none());
        page.items.extend(found.and_then(|entity| matching(world, entity, &command.filter)));
        return page;
    }
    let most = command.limit.clamp(1, limit::PAGE_ITEMS_MAX);
    for (seen, (id, entity)) in index.agents_after(command.after).enumerate() {
        if page.items.len() == most || seen == limit::PAGE_SCAN_MAX {
            return page;
        }
        page.next = Some(id);
        page.items.extend(matching(world, entity, &command.filter));
    }
    page.next = None;
    page
}

pub(super) fn matching(world: &World, entity: Entity, filter: &AgentFilter) -> Option<AgentSummary> {
    let agent = world.get::<Agent>(entity)?;
    let manifest = &agent.manifest.manifest;
    let wanted = filter.state.is_none_or(|state| agent.state == state)
        && filter.tag.as_ref().is_none_or(|tag| manifest.tags.contains(tag))
        && filter.matching.as_ref().is_none_or(|part| agent.name.to_lowercase().contains(&part.to_lowercase()));
    if !wanted {
        return None;
    }
    let (provider, model) = asks(world, &manifest.model);
    let (name, state, created_at) = (agent.name.clone(), agent.state, agent.created_at);
    Some(AgentSummary { id: id_of(world, entity), name, state, created_at, provider, model })
}
