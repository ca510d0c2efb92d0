//! Compactions that were under way when the daemon ended go on.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::SessionId;
use agentsvc_components::kernel::record::Op;

use agentsvc_components::compaction::record::CompactionRecord;
use agentsvc_components::compaction::{Compaction, CompactionState};
use agentsvc_components::session::Session;

use super::{Compactions, plan};
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::kernel::record::Error;
use crate::kernel::restore::Records;
use crate::kernel::{index, record};

/// Brings the stored compactions back. They stand in line in the order in which they were begun, and of two of one
/// session the first goes on.
pub(super) fn restore(world: &mut World, records: &mut Records) -> Result<(), Error> {
    let mut stored = records.take::<CompactionRecord>();
    stored.sort_by_key(|record| record.id);
    stored.into_iter().for_each(|record| resume(world, &record));
    Ok(())
}

/// The row of a compaction.
pub(super) fn row(world: &World, entity: Entity) -> Option<Op> {
    let job = world.get::<Compaction>(entity)?;
    Some(record::put(&CompactionRecord {
        id: id_of(world, entity),
        session: id_of::<SessionId>(world, job.session),
        log: job.log,
        from: job.from,
        upto: job.upto,
        attempt: job.attempt,
    }))
}

/// Brings a stored compaction back; drops it when its history is gone or summarised already.
fn resume(world: &mut World, stored: &CompactionRecord) {
    let CompactionRecord { id, log, from, upto, attempt, .. } = *stored;
    let session = index::session(world, stored.session).filter(|session| {
        let fits = |home: &Session| home.log == log && home.compacted == from && upto <= home.next_ordinal;
        world.get::<Session>(*session).is_some_and(fits) && world.resource::<Compactions>().of(*session).is_none()
    });
    let Some((session, agent)) = session.and_then(|s| Some((s, world.get::<Session>(s)?.agent))) else {
        world.op(record::remove::<CompactionRecord>(id));
        return;
    };
    let state = CompactionState::Reserving;
    let entity = world.spawn((id, Compaction { agent, session, log, from, upto, attempt, state })).id();
    plan::enqueue(world, agent, entity);
}
