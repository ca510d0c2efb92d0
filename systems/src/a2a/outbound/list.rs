//! External agents and sent tasks are read and listed.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::a2a::outbound::{A2aAgent, A2aAgentId, A2aSent, A2aSentId};
use agentsvc_components::{AgentId, Refusal, RefusalKind};

use super::ExternalAgents;
use crate::kernel::command::{Answer, Place, command};
use crate::kernel::entities::{Indexed, List, View};
use crate::kernel::index::id_of;

/// What the world knows of an external agent. Its secret is sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct A2aAgentView {
    /// Its id.
    pub id: A2aAgentId,
    /// Its state.
    pub agent: A2aAgent,
}

impl View for A2aAgentView {
    type Kind = A2aAgent;
    type Filter = ();
    const NAMES: [&'static str; 2] = ["get_a2a_agent", "list_a2a_agents"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        Some(Self { id: id_of(world, at), agent: world.get::<A2aAgent>(at)?.clone() })
    }

    fn passes(&self, (): &()) -> bool {
        true
    }
}

/// What the world knows of a sent task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct A2aSentView {
    /// Its id.
    pub id: A2aSentId,
    /// Its state.
    pub task: A2aSent,
}

impl View for A2aSentView {
    type Kind = A2aSent;
    /// Those that this agent sent; `None` shows all.
    type Filter = Option<AgentId>;
    const NAMES: [&'static str; 2] = ["get_a2a_sent", "list_a2a_sent"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        Some(Self { id: id_of(world, at), task: world.get::<A2aSent>(at)?.clone() })
    }

    fn passes(&self, filter: &Option<AgentId>) -> bool {
        filter.is_none() || self.task.from == *filter
    }
}

/// Finds an external agent by its id, its URL or its name.
#[derive(Clone, Debug)]
pub struct FindA2aAgent(pub String);

command! {
    quick "find_a2a_agent" FindA2aAgent => A2aAgentView, Root, |it, world| Answer::Now(found(world, &it.0))
}

fn found(world: &World, text: &str) -> Result<A2aAgentView, Refusal> {
    let agents = world.resource::<ExternalAgents>();
    let id = text.parse::<A2aAgentId>().ok().filter(|id| agents.get(*id).is_some());
    let id = id.or_else(|| agents.by_url(text)).or_else(|| agents.by_url(text.trim_end_matches('/')));
    let id = id.or_else(|| agents.by_name(text)).ok_or_else(|| {
        let shown: String = text.chars().filter(|c| !c.is_control()).take(100).collect();
        Refusal::new(RefusalKind::NotFound, format!("{} {shown:?} not found; discover it first", A2aAgent::NOUN))
    })?;
    A2aAgentView::seen(world, id)
}
