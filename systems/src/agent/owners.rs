//! The agents of each user: lists for a user, and the limit of their number, look at those alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use agentsvc_components::agent::{Agent, OwnedBy};
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::{AgentId, Refusal};
use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::{Entity, Resource, World};
use bevy_ecs::world::DeferredWorld;

use super::{error_codes, family_of, members};
use crate::config::Settings;
use crate::kernel::check::Faults;
use crate::kernel::index::Index;
use crate::people;
use crate::session::{Stored, Taken};

/// Agents by the users whom they belong to, in the order of their ids.
#[derive(Resource, Default)]
pub(super) struct Owners(BTreeMap<UserId, BTreeMap<AgentId, Entity>>);

impl Owners {
    /// How many agents belong to a user.
    pub(super) fn count(&self, user: UserId) -> usize {
        self.0.get(&user).map_or(0, BTreeMap::len)
    }

    /// The agents of a user that come after one.
    pub(super) fn after(&self, user: UserId, after: Option<AgentId>) -> impl Iterator<Item = (AgentId, Entity)> + '_ {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let own = self.0.get(&user).into_iter();
        own.flat_map(move |own| own.range((from, Bound::Unbounded)).map(|(id, at)| (*id, *at)))
    }
}

/// Registers the hooks that keep the index.
pub(super) fn install(world: &mut World) {
    world.init_resource::<Owners>();
    world.register_component_hooks::<OwnedBy>().on_insert(given).on_discard(taken);
}

fn of(world: &DeferredWorld<'_>, at: Entity) -> Option<(UserId, AgentId)> {
    Some((world.get::<OwnedBy>(at)?.0, *world.get::<AgentId>(at)?))
}

/// What its sessions take goes with an agent.
fn taken_by(world: &DeferredWorld<'_>, at: Entity) -> Taken {
    let (index, stored) = (world.resource::<Index>(), world.resource::<Stored>());
    world.get::<Agent>(at).map_or_else(Taken::default, |agent| Taken::by(index, stored, at, agent))
}

fn given(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some((user, agent)) = of(&world, at.entity) else { return };
    world.resource_mut::<Owners>().0.entry(user).or_default().insert(agent, at.entity);
    let more = taken_by(&world, at.entity);
    world.resource_mut::<Stored>().of_user(user, more);
}

fn taken(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some((user, agent)) = of(&world, at.entity) else { return };
    let less = taken_by(&world, at.entity).less();
    world.resource_mut::<Stored>().of_user(user, less);
    let owners = &mut world.resource_mut::<Owners>().0;
    if let Some(own) = owners.get_mut(&user) {
        own.remove(&agent);
        if own.is_empty() {
            owners.remove(&user);
        }
    }
}

/// The agents of the user whose own things are all that is known to whoever acts; `None` for those who know of everything.
pub(crate) fn own_agents(world: &World) -> Option<Vec<Entity>> {
    let user = people::limit(world)?;
    Some(world.resource::<Owners>().after(user, None).map(|(_, agent)| agent).collect())
}

/// The agents that share with this one what is bounded: all of the user with a limited role whom it belongs to, else those of its
/// family.
pub(crate) fn kin(world: &World, agent: Entity) -> Vec<Entity> {
    match people::limit_of(world, agent) {
        Some(user) => world.resource::<Owners>().after(user, None).map(|(_, agent)| agent).collect(),
        None => members(world, family_of(world, agent)).collect(),
    }
}

/// Refuses so many further agents of a user where there is no room for them.
pub(super) fn admit(world: &World, owner: Option<OwnedBy>, more: usize) -> Result<(), Refusal> {
    let Some(OwnedBy(user)) = owner else { return Ok(()) };
    let most = world.resource::<Settings>().agents_per_user_max as usize;
    if world.resource::<Owners>().count(user).saturating_add(more) <= most {
        return Ok(());
    }
    let text = format!("the user has the most agents that a user may have ({most}); delete some first");
    Err(Refusal::of(error_codes::USER_AGENTS_FULL, text))
}

/// Says where the index does not hold what a full scan finds.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let mut owned = world.query::<(Entity, &AgentId, &OwnedBy)>();
    let world = &*world;
    let scan: BTreeSet<_> = owned.iter(world).map(|(at, id, by)| (by.0, *id, at)).collect();
    let all = world.resource::<Owners>().0.iter();
    let known = all.flat_map(|(user, own)| own.iter().map(|(id, at)| (*user, *id, *at))).collect();
    faults.same("agents by their users", &known, &scan);
}
