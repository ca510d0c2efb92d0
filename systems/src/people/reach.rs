//! What those who act may know of: users with a limited role, and their agents, know of what belongs to the user.

use agentsvc_components::agent::{OwnedBy, SpawnedBy};
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::scope::Scope;
use agentsvc_components::people::User;
use agentsvc_components::{Actor, AgentId};
use bevy_ecs::prelude::{Entity, World};
use uuid::Uuid;

use super::index::Users;
use crate::kernel::acting::Acting;
use crate::kernel::entities::state;
use crate::kernel::index;

/// The user whose own things are all that is known to whoever acts: a key of the user, or an agent that belongs to them.
/// `None` for those who know of everything.
pub(crate) fn limit(world: &World) -> Option<UserId> {
    match world.resource::<Acting>().0 {
        Actor::Key { user, .. } => user.filter(|user| is_limited(world, *user)),
        // One that is gone while its turn still acts reaches nothing.
        Actor::Agent { agent, .. } => match index::agent(world, agent) {
            Ok(agent) => limit_of(world, agent),
            Err(_) => Some(UserId(Uuid::nil())),
        },
        Actor::System | Actor::Api | Actor::Client | Actor::Hook | Actor::Peer | Actor::Chat => None,
    }
}

/// Whose share of a pool whoever acts takes: that of a user with a limited role, or that of the agent's family. `None` for those
/// whom the pool alone bounds.
pub(crate) fn holder(world: &World) -> Option<Holder> {
    if let Some(user) = limit(world) {
        return Some(Holder::User(user));
    }
    let Actor::Agent { agent, .. } = world.resource::<Acting>().0 else { return None };
    index::agent(world, agent).ok().map(|agent| holder_of(world, agent))
}

/// Whose share of a pool what belongs to an agent takes.
pub(crate) fn holder_of(world: &World, agent: Entity) -> Holder {
    limit_of(world, agent).map_or_else(|| Holder::Family(family_of(world, agent)), Holder::User)
}

/// The user with a limited role whom an agent belongs to.
pub(crate) fn limit_of(world: &World, agent: Entity) -> Option<UserId> {
    world.get::<OwnedBy>(agent).map(|by| by.0).filter(|user| is_limited(world, *user))
}

/// Does the agent belong to someone who may not run agents, such as a user whose role was lowered?
pub(crate) fn is_at_rest(world: &World, agent: Entity) -> bool {
    let user = world.get::<OwnedBy>(agent).and_then(|by| state::<User>(world, by.0));
    user.is_some_and(|user| !user.role.has(Scope::Chat))
}

/// Is there this user?
pub(crate) fn lives(world: &World, user: UserId) -> bool {
    state::<User>(world, user).is_some()
}

/// One who is gone may do as little as there is.
fn is_limited(world: &World, user: UserId) -> bool {
    let role = world.get_resource::<Users>().and_then(|_| state::<User>(world, user)).map(|user| user.role);
    role.is_none_or(|role| role.is_limited())
}

/// May whoever acts know of this agent?
pub(crate) fn reaches(world: &World, agent: Entity) -> bool {
    limit(world).is_none_or(|user| world.get::<OwnedBy>(agent) == Some(&OwnedBy(user)))
}

/// May whoever acts know of what belongs to this agent? What belongs to no agent is for those who know of everything.
pub(crate) fn reaches_of(world: &World, agent: Option<AgentId>) -> bool {
    let Some(user) = limit(world) else { return true };
    let found = agent.and_then(|agent| index::agent(world, agent).ok());
    found.and_then(|agent| world.get::<OwnedBy>(agent)) == Some(&OwnedBy(user))
}

/// The agents above one that spawned it, nearest first.
pub(crate) fn ancestors(world: &World, agent: Entity) -> impl Iterator<Item = AgentId> + '_ {
    let parent = |entity: Entity| world.get::<SpawnedBy>(entity).map(|by| by.0);
    std::iter::successors(parent(agent), move |id| index::agent(world, *id).ok().and_then(parent))
}

/// The family of an agent, by the agent at its top, which a client created; it may be gone already. What bounds an agent bounds
/// its family, so that none takes more by spawning others.
pub(crate) fn family_of(world: &World, agent: Entity) -> AgentId {
    ancestors(world, agent).last().unwrap_or_else(|| index::id_of(world, agent))
}
