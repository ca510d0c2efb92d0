//! Rows of sessions.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::AgentId;
use agentsvc_components::kernel::record::Op;
use agentsvc_components::kernel::taint::KnownAddresses;
use agentsvc_components::session::record::SessionRecord;
use agentsvc_components::session::{Ending, Session};

use crate::kernel::footprint::of;
use crate::kernel::index::id_of;
use crate::kernel::record;

/// The row of a session.
pub(super) fn row(world: &World, entity: Entity) -> Option<Op> {
    let session = world.get::<Session>(entity)?;
    Some(record::put(&SessionRecord {
        id: id_of(world, entity),
        agent: id_of::<AgentId>(world, session.agent),
        log: session.log,
        created_at: session.created_at,
        updated_at: session.updated_at,
        label: session.label.as_deref().cloned(),
        message_count: session.message_count,
        next_ordinal: session.next_ordinal,
        interrupted: session.interrupted,
        ephemeral: session.ephemeral,
        compacted: session.compacted,
        stored: session.stored,
        taint: session.taint,
        addresses: world.get::<KnownAddresses>(entity).map(|known| known.0.clone()).unwrap_or_default(),
        ending: world.get::<Ending>(entity).cloned(),
        is_strangers: session.is_strangers,
    }))
}

/// Bytes of its label, of the addresses it knows and of what says that its turns end.
pub(super) fn heap(world: &World, entity: Entity) -> usize {
    // A label stands in the index once more.
    let known = of(world, entity, |it: &KnownAddresses| size_of::<Vec<u64>>() + size_of_val(&*it.0));
    known
        + of(world, entity, |it: &Ending| size_of::<Ending>() + it.why.len() + size_of_val(&*it.earlier))
        + of(world, entity, |it: &Session| it.label.as_ref().map_or(0, |label| size_of::<Box<str>>() + 3 * label.len()))
}
