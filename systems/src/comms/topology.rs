//! The graph of agents: who spawned whom, and who has written to whom.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::AgentId;
use agentsvc_components::agent::{AgentState, SpawnedBy};
use agentsvc_components::comms::{CommsEvent, CommsKind};
use bevy_ecs::prelude::{Entity, World};

use super::limits::COMMS_NODES_MAX;
use crate::agent::AgentView;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::Entities;
use crate::kernel::index::{self, Index};

/// Reads the topology.
#[derive(Clone, Copy, Debug)]
pub struct GetTopology;

/// The graph of agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Live agents, in order of creation.
    pub nodes: Vec<Node>,
    /// Relations between them.
    pub edges: Vec<Edge>,
    /// How many agents live.
    pub total: usize,
}

/// An agent of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: AgentId,
    /// Its name.
    pub name: Box<str>,
    /// Its lifecycle state.
    pub state: AgentState,
    /// The model it asks, as `provider/model`.
    pub model: Box<str>,
}

/// A relation of two agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The parent, or the sender.
    pub from: AgentId,
    /// The child, or the receiver.
    pub to: AgentId,
    /// Which relation.
    pub kind: EdgeKind,
}

agentsvc_components::enum_words! {
    /// Which relation an edge stands for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum EdgeKind [as_str] {
        /// The first spawned the second.
        ParentChild = "parent_child",
        /// The first has sent messages to the second.
        Peer = "peer",
    }
}

command!(read "get_topology" GetTopology => Topology, All, |_, world| Answer::read(topology(world)));

fn topology(world: &World) -> Topology {
    let live = |id: AgentId| index::agent(world, id).ok().map(|entity| (id, entity));
    let messages = messages(world);
    let mut nodes: BTreeMap<AgentId, Entity> = BTreeMap::new();
    for id in messages.iter().flat_map(|(from, to)| [*from, *to]) {
        if nodes.len() < COMMS_NODES_MAX {
            nodes.extend(live(id));
        }
    }
    let mut others = world.resource::<Index>().agents_after(None);
    while nodes.len() < COMMS_NODES_MAX
        && let Some((id, entity)) = others.next()
    {
        nodes.insert(id, entity);
    }
    let parents = nodes.iter().filter_map(|(id, entity)| Some((world.get::<SpawnedBy>(*entity)?.0, *id)));
    let mut edges: Vec<Edge> = parents
        .map(|edge| (edge, EdgeKind::ParentChild))
        .chain(messages.into_iter().map(|edge| (edge, EdgeKind::Peer)))
        .filter(|((from, to), _)| nodes.contains_key(from) && nodes.contains_key(to))
        .map(|((from, to), kind)| Edge { from, to, kind })
        .collect();
    edges.sort_unstable();
    let nodes = nodes.values().filter_map(|entity| {
        let AgentView { id, name, state, provider, model, .. } = AgentView::of(world, *entity)?;
        Some(Node { id, name, state, model: format!("{provider}/{model}").into() })
    });
    Topology { nodes: nodes.collect(), edges, total: world.resource::<Index>().agent_count() }
}

/// Who has written to whom, as far as the kept events say.
fn messages(world: &World) -> BTreeSet<(AgentId, AgentId)> {
    let events = world.resource::<Entities<CommsEvent>>().after(None);
    let events = events.filter_map(|(_, at)| world.get::<CommsEvent>(at));
    let messages = events.filter(|event| event.kind == CommsKind::AgentMessage);
    messages.filter_map(|event| Some((event.source?, event.target?))).filter(|(from, to)| from != to).collect()
}
