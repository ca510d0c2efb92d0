//! The index of the agents of each user is kept, and their number bounded.

use std::collections::BTreeSet;

use agentsvc_components::agent::{Agent, OwnedBy};
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::{AgentId, Refusal};
use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::{Entity, World};
use bevy_ecs::world::DeferredWorld;

use super::{error_codes, family_of, members};
use crate::config::Settings;
use crate::kernel::check::Faults;
use crate::kernel::index::Index;
use crate::people::{self, Owners};
use crate::session::{Stored, Taken};

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
    world.resource_mut::<Owners>().give(user, agent, at.entity);
    let more = taken_by(&world, at.entity);
    world.resource_mut::<Stored>().of_user(user, more);
}

fn taken(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some((user, agent)) = of(&world, at.entity) else { return };
    let less = taken_by(&world, at.entity).less();
    world.resource_mut::<Stored>().of_user(user, less);
    world.resource_mut::<Owners>().take(user, agent);
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
    let known = world.resource::<Owners>().all().collect();
    faults.same("agents by their users", &known, &scan);
}
