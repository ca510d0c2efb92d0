//! Mode and state of agents: Stable or Normal, started or stopped.

use crate::agent::{audit_kinds, error_codes};
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::{Agent, AgentMode, AgentState, OwnedBy};
use agentsvc_components::event::Event;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::{AgentId, Refusal};
use serde_json::json;

use super::update::set_manifest;
use super::{AgentStarted, AgentStopped, AgentView, ItemResult};
use crate::audit::Audit;
use crate::config::Settings;
use crate::event::told::Tell;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::index;
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::react;
use crate::people::{self, Owners};

/// Sets an agent's mode. Stable writes the model it asks now into its manifest, so that a change of the
/// daemon's default no longer reaches it, and freezes its skills.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetMode {
    /// Whose.
    pub agent: AgentId,
    /// Which.
    pub mode: AgentMode,
    /// The skills that Stable freezes, each as `<name>@<hash>`; `None` where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<Box<str>>>,
}

command!(write "set_mode" SetMode => AgentView, Id(|it| it.agent.0), |it, world| Answer::stored(set_mode(world, it)));

fn set_mode(world: &mut World, command: SetMode) -> Result<AgentView, Refusal> {
    let entity = index::agent(world, command.agent)?;
    let missing = || Refusal::not_found("agent", command.agent);
    let now = world.resource::<Now>().0;
    let mut agent = world.get_mut::<Agent>(entity).ok_or_else(missing)?;
    let manifest = agent.manifest.clone();
    agent.mode = command.mode;
    agent.updated_at = now;
    world.mark(entity);
    let resolved = world.resource::<Settings>().resolve(&manifest.manifest.model);
    let mut pinned = manifest.manifest.clone();
    match command.mode {
        AgentMode::Stable => {
            pinned.model = resolved;
            // What was frozen before stays as it was.
            pinned.frozen_skills = pinned.frozen_skills.or(command.skills);
        }
        AgentMode::Normal => pinned.frozen_skills = None,
    }
    if pinned != manifest.manifest {
        set_manifest(world, entity, pinned);
    }
    world.audit(audit_kinds::AGENT_MODE_CHANGED, command.agent, json!({ "mode": command.mode }));
    world.event(Event::AgentUpdated { agent: command.agent });
    AgentView::of(world, entity).ok_or_else(missing)
}

/// Stops agents: their running turns are stopped, and they take no messages. Messages that wait in their
/// sessions stay stored and are answered after the next start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StopAgents(pub Vec<AgentId>);

command! {
    /// The state of each, in order.
    last_write "stop_agents" StopAgents => Vec<ItemResult<AgentState>>, All, |StopAgents(it), world|
        Answer::Stored(each(world, it, stop))
}

/// Starts stopped agents; what waits in their sessions goes on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartAgents(pub Vec<AgentId>);

command! {
    /// The state of each, in order.
    write "start_agents" StartAgents => Vec<ItemResult<AgentState>>, All, |StartAgents(it), world|
        Answer::Stored(each(world, it, start))
}

type Act = fn(&mut World, Entity, AgentId) -> Result<AgentState, Refusal>;

fn each(world: &mut World, ids: Vec<AgentId>, act: Act) -> Vec<ItemResult<AgentState>> {
    ids.into_iter().map(|id| (id, index::agent(world, id).and_then(|entity| act(world, entity, id)))).collect()
}

/// Stops the agents of a user who is gone: nobody answers for what they do and spend.
pub(super) fn stop_agents_of(world: &mut World, user: UserId) {
    let own: Vec<(AgentId, Entity)> = world.resource::<Owners>().after(user, None).collect();
    for (id, entity) in own {
        // A stop is not refused.
        let _stopped = stop(world, entity, id);
    }
}

fn set_state(world: &mut World, entity: Entity, state: AgentState) -> bool {
    let now = world.resource::<Now>().0;
    let Some(mut agent) = world.get_mut::<Agent>(entity) else { return false };
    if agent.state == state {
        return false;
    }
    agent.state = state;
    agent.updated_at = now;
    world.mark(entity);
    true
}

fn stop(world: &mut World, entity: Entity, id: AgentId) -> Result<AgentState, Refusal> {
    if set_state(world, entity, AgentState::Stopped) {
        react(world, &AgentStopped { agent: entity });
        world.audit(audit_kinds::AGENT_STOPPED, id, json!({}));
        world.event(Event::AgentStopped { agent: id });
    }
    Ok(AgentState::Stopped)
}

fn start(world: &mut World, entity: Entity, id: AgentId) -> Result<AgentState, Refusal> {
    if world.get::<OwnedBy>(entity).is_some_and(|by| !people::lives(world, by.0)) {
        let text = "the user of this agent was deleted; give the agent to another user or to the installation first";
        return Err(Refusal::of(error_codes::AGENT_USER_GONE, text));
    }
    if set_state(world, entity, AgentState::Running) {
        react(world, &AgentStarted { agent: entity });
        world.audit(audit_kinds::AGENT_STARTED, id, json!({}));
        world.event(Event::AgentStarted { agent: id });
    }
    Ok(AgentState::Running)
}
