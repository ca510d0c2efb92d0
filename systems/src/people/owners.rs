//! The agents of each user: lists for a user, and the limit of their number, look at those alone.

use std::collections::BTreeMap;
use std::ops::Bound;

use agentsvc_components::AgentId;
use agentsvc_components::kernel::id::UserId;
use bevy_ecs::prelude::{Entity, Resource, World};

use super::reach::limit;

/// Agents by the users whom they belong to, in the order of their ids. The domain of agents keeps it.
#[derive(Resource, Default)]
pub(crate) struct Owners(BTreeMap<UserId, BTreeMap<AgentId, Entity>>);

impl Owners {
    /// How many agents belong to a user.
    pub(crate) fn count(&self, user: UserId) -> usize {
        self.0.get(&user).map_or(0, BTreeMap::len)
    }

    /// The agents of a user that come after one.
    pub(crate) fn after(&self, user: UserId, after: Option<AgentId>) -> impl Iterator<Item = (AgentId, Entity)> + '_ {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let own = self.0.get(&user).into_iter();
        own.flat_map(move |own| own.range((from, Bound::Unbounded)).map(|(id, at)| (*id, *at)))
    }

    /// All that belong to someone.
    pub(crate) fn all(&self) -> impl Iterator<Item = (UserId, AgentId, Entity)> + '_ {
        self.0.iter().flat_map(|(user, own)| own.iter().map(|(id, at)| (*user, *id, *at)))
    }

    /// An agent belongs to a user from now on.
    pub(crate) fn give(&mut self, user: UserId, agent: AgentId, at: Entity) {
        self.0.entry(user).or_default().insert(agent, at);
    }

    /// An agent belongs to a user no more.
    pub(crate) fn take(&mut self, user: UserId, agent: AgentId) {
        if let Some(own) = self.0.get_mut(&user) {
            own.remove(&agent);
            if own.is_empty() {
                self.0.remove(&user);
            }
        }
    }
}

/// The agents of the user whose own things are all that is known to whoever acts; `None` for those who know of everything.
pub(crate) fn own_agents(world: &World) -> Option<Vec<Entity>> {
    let user = limit(world)?;
    Some(world.resource::<Owners>().after(user, None).map(|(_, agent)| agent).collect())
}

/// The ids of the same.
pub(crate) fn own_agent_ids(world: &World) -> Option<Vec<AgentId>> {
    let user = limit(world)?;
    Some(world.resource::<Owners>().after(user, None).map(|(id, _)| id).collect())
}
