//! Dreaming of an agent is switched on and off, and comes and goes with the agent.

use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};
use serde_json::json;

use agentsvc_components::agent::Agent;
use agentsvc_components::auto_dream::{Dream, DreamId};
use agentsvc_components::{AgentId, Refusal};

use super::begin::change_dream;
use super::index::Dreams;
use super::list::DreamView;
use super::{audit_kinds, time};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, state};
use crate::kernel::index::{self, Index, id_of};
use crate::kernel::outbox::Emit;

/// Switches the dreaming of an agent on or off, whatever its manifest says. A run that is under way goes on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SetAutoDream {
    /// Whose.
    pub agent: AgentId,
    /// On?
    pub enabled: bool,
}

command! {
    write "set_auto_dream" SetAutoDream => DreamView, Id(|it| it.agent.0), |it, world|
        Answer::stored(set(world, it.agent, it.enabled))
}

fn set(world: &mut World, agent: AgentId, enabled: bool) -> Result<DreamView, Refusal> {
    let owner = index::agent(world, agent)?;
    let id = DreamId::from(agent);
    let was = state::<Dream>(world, id).map(|dream| dream.enabled);
    match was {
        None => spawn(world, owner, enabled),
        Some(was) if was != enabled => {
            let now = world.resource::<Now>().0;
            change_dream(world, id, |dream| {
                dream.enabled = enabled;
                if enabled {
                    dream.since = now;
                }
            });
            let check_at = time::next_check(world, id);
            change_dream(world, id, |dream| dream.check_at = check_at);
        }
        Some(_) => {}
    }
    if was != Some(enabled) {
        world.audit(audit_kinds::AUTO_DREAM_SET, agent, json!({ "enabled": enabled }));
    }
    DreamView::seen(world, id)
}

/// The clock of an agent starts now.
fn spawn(world: &mut World, owner: Entity, enabled: bool) {
    let id = DreamId::from(id_of::<AgentId>(world, owner));
    let now = world.resource::<Now>().0;
    let sessions = u32::try_from(world.resource::<Index>().session_count_of(owner)).unwrap_or(u32::MAX);
    let entity = world.spawn((id, Dream { enabled, since: now, sessions, check_at: now, ..Dream::default() })).id();
    world.mark(entity);
    let check_at = time::next_check(world, id);
    change_dream(world, id, |dream| dream.check_at = check_at);
}

/// An agent was spawned; its manifest may ask for dreaming.
pub(super) fn agent_spawned(world: &mut World, owner: Entity) {
    let asks = |agent: &Agent| agent.manifest.manifest.auto_dream.enabled == Some(true);
    if world.get::<Agent>(owner).is_some_and(asks) {
        spawn(world, owner, true);
    }
}

/// An agent leaves the world. The turn of its run has ended with its sessions.
pub(super) fn agent_removed(world: &mut World, agent: AgentId) {
    if let Some(entity) = world.resource::<Dreams>().get(DreamId::from(agent)) {
        world.despawn(entity);
    }
}
