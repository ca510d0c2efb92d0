//! Compactions that were under way when the daemon ended go on.

use bevy_ecs::prelude::World;

use agentsvc_components::compaction::record::CompactionRecord;
use agentsvc_components::compaction::{Compaction, CompactionState};
use agentsvc_components::session::Session;

use super::Compactions;
use crate::kernel::outbox::Emit;
use crate::kernel::{index, record};
use crate::turn;

/// Brings a stored compaction back; drops it when its history is gone or summarised already.
pub(crate) fn resume(world: &mut World, stored: &CompactionRecord) {
    let CompactionRecord { id, log, from, upto, attempt, .. } = *stored;
    let session = index::session(world, stored.session).filter(|session| {
        let fits = |home: &Session| home.log == log && home.compacted == from && upto <= home.next_ordinal;
        world.get::<Session>(*session).is_some_and(fits) && world.resource::<Compactions>().of(*session).is_none()
    });
    let Some((session, agent)) = session.and_then(|s| Some((s, world.get::<Session>(s)?.agent))) else {
        world.op(record::remove_compaction(id));
        return;
    };
    let state = CompactionState::Reserving;
    let entity = world.spawn((id, Compaction { agent, session, log, from, upto, attempt, state })).id();
    turn::stand_in_line(world, agent, entity);
}
