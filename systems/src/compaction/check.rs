//! What must hold of compactions.

use bevy_ecs::prelude::{Entity, World};
use hashbrown::HashMap;

use agentsvc_components::CompactionId;
use agentsvc_components::compaction::Compaction;
use agentsvc_components::session::Session;

use super::Compactions;
use crate::kernel::check::Faults;

/// Says which index is wrong, and which job lacks its session ([`check`](crate::kernel::check)).
pub(crate) fn check(world: &mut World, faults: &mut Faults) {
    let mut jobs = world.query::<(Entity, &CompactionId, &Compaction)>();
    let world = &*world;
    let compactions = world.resource::<Compactions>();
    let by_id: HashMap<CompactionId, Entity> = jobs.iter(world).map(|(entity, id, _)| (*id, entity)).collect();
    let by_session: HashMap<Entity, Entity> = jobs.iter(world).map(|(entity, _, job)| (job.session, entity)).collect();
    faults.same("compactions", &compactions.by_id, &by_id);
    faults.same("compactions by session", &compactions.by_session, &by_session);
    faults.same("compactions, one for each session", &by_id.len(), &by_session.len());
    for (_, id, job) in jobs.iter(world) {
        let session = world.get::<Session>(job.session);
        let is_its = session.is_some_and(|session| session.agent == job.agent && session.log == job.log);
        faults.that(is_its, || format!("compaction {id}: the session does not exist or has another history"));
    }
}
