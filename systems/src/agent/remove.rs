//! Agents are killed: they, their sessions and their turns leave the world.

use crate::agent::audit_kinds;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::sweep::{AgentSwept, SweepAgent};
use agentsvc_components::agent::{Agent, SpawnedBy};
use agentsvc_components::event::Event;
use agentsvc_components::{AgentId, Refusal, TurnId};
use serde_json::json;

use super::{ItemResult, family};
use crate::agent::manifests as interner;
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

/// Kills an agent; `by` is the turn that does, if one does.
pub(crate) fn remove(world: &mut World, id: AgentId, by: Option<TurnId>) -> Result<Box<str>, Refusal> {
    let entity = index::agent(world, id)?;
    let agent = world.get::<Agent>(entity).ok_or_else(|| Refusal::not_found("agent", id))?;
    let (name, manifest) = (agent.name.clone(), agent.manifest.hash);
    world.resource_mut::<Index>().remove_name(&name, entity);
    if let Some(parent) = world.get::<SpawnedBy>(entity).map(|by| by.0) {
        family::leave(world, id, parent);
    }
    session::remove_all(world, entity, "the agent was removed");
    react(world, &Removed { entity, id });
    world.despawn(entity);
    world.op(record::remove_manifest_text(id));
    // Its traces and memory go at leisure; the record goes when they are gone.
    world.op(record::put_agent_sweep(id));
    world.effect(SweepAgent(id));
    interner::release(world, manifest);
    world.audit(audit_kinds::AGENT_TERMINATED, id, json!({ "name": name }));
    world.event(Event::AgentTerminated { agent: id, name: name.to_string(), by });
    Ok(name)
}
