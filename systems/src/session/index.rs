//! Sessions by their ids, owners and labels.

use std::collections::BTreeSet;

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::{Entity, World};
use bevy_ecs::world::DeferredWorld;

use agentsvc_components::SessionId;
use agentsvc_components::session::Session;
use agentsvc_components::session::record::SessionRecord;

use crate::kernel::check::Faults;
use crate::kernel::index::{Index, beyond_first, session};
use crate::kernel::outbox::Outbox;
use crate::kernel::record;

/// Registers the hooks that keep the index and write the tombstones.
pub(super) fn install(world: &mut World) {
    world.register_component_hooks::<SessionId>().on_insert(inserted).on_remove(removed);
}

fn inserted(mut world: DeferredWorld<'_>, at: HookContext) {
    if world.resource::<Index>().loading {
        return;
    }
    let Some(id) = world.get::<SessionId>(at.entity).copied() else { return };
    let mut index = world.resource_mut::<Index>();
    let hash = index.keys().session(id);
    index.sessions.insert(hash, at.entity);
}

fn removed(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<SessionId>(at.entity).copied() else { return };
    let owner = world.get::<Session>(at.entity).map(|session| session.agent);
    let mut index = world.resource_mut::<Index>();
    let hash = index.keys().session(id);
    index.sessions.remove(hash, at.entity);
    if let Some(owner) = owner {
        index.remove_owned_session(owner, id);
    }
    world.resource_mut::<Outbox>().ops.push(record::remove::<SessionRecord>(id));
}

/// Says where the index does not hold what a full scan finds.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let mut sessions = world.query::<(Entity, &SessionId, &Session)>();
    let world = &*world;
    let index = world.resource::<Index>();
    let mut of = |hidden: bool| {
        let such = sessions.iter(world).filter(|(.., session)| session.ephemeral == hidden);
        such.map(|(_, id, session)| (session.agent, *id)).collect::<BTreeSet<_>>()
    };
    let (listed, hidden) = (of(false), of(true));
    faults.same("sessions by agent", &index.sessions_by_agent, &listed);
    let more = beyond_first(&listed.iter().copied().collect::<Vec<_>>());
    faults.same("sessions beyond the first of each agent", &index.more_sessions, &more);
    faults.same("hidden sessions", &index.hidden, &hidden);
    faults.same("sessions", &index.sessions.len(), &(listed.len() + hidden.len()));
    let mut labels = BTreeSet::new();
    for (entity, id, own) in sessions.iter(world) {
        let found = session(world, *id);
        faults.that(found == Some(entity), || format!("session {id}: its id maps to {found:?}"));
        labels.extend(own.label.as_ref().map(|label| ((own.agent, &***label), entity)));
    }
    let known = index.labels.iter().map(|((agent, label), session)| ((*agent, &**label), *session)).collect();
    faults.same("labels", &known, &labels);
}
