//! Agents are killed: they, their sessions and their turns leave the world.

use crate::agent::audit_kinds;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::sweep::AgentSwept;
use agentsvc_components::agent::{Agent, SpawnedBy};
use agentsvc_components::event::Event;
use agentsvc_components::{AgentId, Refusal, TurnId};
use serde_json::json;

use super::{ItemResult, family, removing};
use crate::audit::Audit;
use crate::event::told::Tell;
use crate::kernel::arrivals::Settle;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, Index};
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::{Removed, react};
use crate::kernel::record;
use crate::session;

/// Kills agents. Each id stands alone: an unknown one is refused, the others go.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemoveAgents(pub Vec<AgentId>);

command! {
    /// The name that each had, in order.
    write "remove_agents" RemoveAgents => Vec<ItemResult<Box<str>>>, All, |it, world| {
        let results = it.0.into_iter().map(|id| (id, remove(world, id, None))).collect();
        Answer::Stored(results)
    }
}

impl Settle for AgentSwept {
    fn settle(self, world: &mut World) {
        world.op(record::remove_agent_sweep(self.0));
    }
}

/// Kills an agent; `by` is the turn that does, if one does. Of one with very many turns some end in the steps that follow
/// ([`removing`]).
pub(crate) fn remove(world: &mut World, id: AgentId, by: Option<TurnId>) -> Result<Box<str>, Refusal> {
    let entity = index::agent(world, id)?;
    let agent = world.get::<Agent>(entity).ok_or_else(|| Refusal::not_found("agent", id))?;
    let name = agent.name.clone();
    let turns = world.resource::<Index>().turns_of(entity).count();
    world.resource_mut::<Index>().remove_name(&name, entity);
    let (parent, fits) = (world.get::<SpawnedBy>(entity).map(|by| by.0), removing::fits(world, entity));
    match fits {
        true => session::remove_all(world, entity, removing::REMOVED),
        false => removing::begin(world, entity),
    }
    if let Some(parent) = parent {
        family::leave(world, id, parent);
    }
    react(world, &Removed { entity, id });
    match fits {
        true => removing::end(world, entity),
        false => removing::hide_one(world, entity, id),
    }
    world.op(record::remove_manifest_text(id));
    world.audit(audit_kinds::AGENT_TERMINATED, id, json!({ "name": name, "turns": turns }));
    world.event(Event::AgentTerminated { agent: id, name: name.to_string(), by });
    Ok(name)
}
