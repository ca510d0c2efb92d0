//! What the agents of a family, or of a user with a limited role, remember together: their memory, entries and knowledge. Domains
//! that keep such content count it here, so that no family and no user fills the disk with many agents.

use agentsvc_components::{AgentId, ErrorCode, Refusal};
use bevy_ecs::prelude::{Resource, World};
use hashbrown::HashMap;

use crate::agent::kin;
use crate::config::Settings;
use crate::kernel::index::{self, id_of};

/// Bytes that agents remember. Those without any have no entry.
#[derive(Resource, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remembered {
    of: HashMap<AgentId, u64>,
    /// Of all agents together.
    total: u64,
}

impl Remembered {
    /// An agent remembers so many bytes more, or fewer.
    fn count(&mut self, agent: AgentId, bytes: i64) {
        let before = self.of.get(&agent).copied().unwrap_or_default();
        let now = before.saturating_add_signed(bytes);
        self.total = self.total.saturating_sub(before).saturating_add(now);
        if now == 0 {
            self.of.remove(&agent);
        } else {
            self.of.insert(agent, now);
        }
    }
}

/// An agent remembers so many bytes more, or fewer.
pub(crate) fn count(world: &mut World, agent: AgentId, bytes: i64) {
    world.resource_mut::<Remembered>().count(agent, bytes);
}

/// The agent is gone, with all that it remembered.
pub(super) fn forget(world: &mut World, agent: AgentId) {
    let mut remembered = world.resource_mut::<Remembered>();
    let all = remembered.of.get(&agent).copied().unwrap_or_default();
    remembered.count(agent, -all.cast_signed());
}

/// Refuses so many bytes more where the agents of its family or user have no room for them.
pub(crate) fn admit(world: &World, agent: AgentId, more: i64, code: ErrorCode) -> Result<(), Refusal> {
    let (remembered, most) = (world.resource::<Remembered>(), world.resource::<Settings>().family_memory_max_bytes);
    // While all of them together fit, those of some do.
    if more <= 0 || remembered.total.saturating_add_signed(more) <= most {
        return Ok(());
    }
    let kin = kin(world, index::agent(world, agent)?);
    let of = |agent| remembered.of.get(&id_of::<AgentId>(world, agent)).copied().unwrap_or_default();
    let taken: u64 = kin.into_iter().map(of).sum();
    if taken.saturating_add_signed(more) <= most {
        return Ok(());
    }
    let text = format!(
        "the agents of the same user, or those spawned below the same agent and that agent, remember as much as they may \
         together ({most} bytes, `[proactive_memory] family_max_bytes`); delete some entries first"
    );
    Err(Refusal::of(code, text))
}
