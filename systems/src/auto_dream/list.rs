//! Dreaming is read and listed.

use agentsvc_components::agent::Agent;
use agentsvc_components::auto_dream::{Dream, DreamId};
use agentsvc_components::turn::Turn;
use agentsvc_components::{AgentId, Timestamp};
use bevy_ecs::prelude::{Entity, World};

use super::time::Terms;
use crate::kernel::clock::Now;
use crate::kernel::command::Place;
use crate::kernel::entities::{List, View};
use crate::kernel::index::{self, id_of};

/// What the world knows of an agent's dreaming.
#[derive(Clone, Debug, PartialEq)]
pub struct DreamView {
    /// Whose.
    pub agent: AgentId,
    /// The name of the agent.
    pub name: Box<str>,
    /// Its state.
    pub dream: Dream,
    /// When enough hours have passed.
    pub next_eligible_at: Timestamp,
    /// Hours since the last run that succeeded.
    pub hours_since_last: Option<f64>,
    /// The hours that count for it.
    pub min_hours: u32,
    /// The sessions that count for it.
    pub min_sessions: u32,
    /// Model calls of the run that is under way, and its tool calls.
    pub calls: Option<(u32, u32)>,
}

impl View for DreamView {
    type Kind = Dream;
    type Filter = ();
    const NAMES: [&'static str; 2] = ["get_dream", "list_dreams"];
    const PLACE: Place<List<Self>> = Place::All;

    fn of(world: &World, at: Entity) -> Option<Self> {
        let (id, dream) = (id_of::<DreamId>(world, at), world.get::<Dream>(at)?);
        let agent = AgentId(id.0);
        let name = world.get::<Agent>(index::agent(world, agent).ok()?)?.name.clone();
        let (terms, now) = (Terms::of(world, id), world.resource::<Now>().0);
        let hours = |at: Timestamp| now.ms_since(at) as f64 / 3_600_000.0;
        let turn = dream.run.as_ref().and_then(|run| world.get::<Turn>(index::turn(world, run.turn)?));
        Some(Self {
            agent,
            name,
            next_eligible_at: terms.eligible_at(dream),
            hours_since_last: dream.last_consolidated_at.map(hours),
            min_hours: terms.min_hours,
            min_sessions: terms.min_sessions,
            calls: turn.map(|turn| (turn.iteration, turn.tool_calls)),
            dream: dream.clone(),
        })
    }
}
