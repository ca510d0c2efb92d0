//! Claims that nobody ends are given up.

use bevy_ecs::prelude::World;

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use agentsvc_components::task::Task;

use super::Tasks;
use super::remove::release;
use crate::config::Settings;
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, find};
use crate::task::metrics::TaskTotals;

/// When the oldest claim gets too old.
pub(crate) fn next_due(world: &World) -> Option<Timestamp> {
    let timeout_ms = i64::try_from(world.resource::<Settings>().claim_timeout_secs.saturating_mul(1_000));
    let first = world.resource::<Tasks>().first_claim()?;
    Some(first.plus_ms(timeout_ms.unwrap_or(i64::MAX)))
}

/// Tasks whose claim is older than the configured time wait again. That is no event and wakes no trigger (spec 1,
/// Triggers, rule 5). Looks at no more than the claims that are due, at most [`limit::TASKS_SWEPT_MAX`] a beat.
// &mut World: a task that waits again goes through the hooks of its kind.
pub(crate) fn beat(world: &mut World) {
    let timeout_ms = i64::try_from(world.resource::<Settings>().claim_timeout_secs.saturating_mul(1_000));
    let until = world.resource::<Now>().0.plus_ms(-timeout_ms.unwrap_or(i64::MAX));
    for _ in 0..limit::TASKS_SWEPT_MAX {
        let Some(id) = world.resource::<Tasks>().claim_until(until) else { return };
        release(world, id);
        world.resource_mut::<TaskTotals>().claims_expired += 1;
    }
}

/// The clock was set back: a claim that was made in a time that it has left counts from now, for it would hold by so much
/// longer.
// &mut World: changes entities by their ids, through the hooks of their kind.
pub(crate) fn clock_set_back(world: &mut World) {
    let now = world.resource::<Now>().0;
    let made_later = world.resource::<Tasks>().claims_after(now);
    for id in made_later {
        let Ok(entity) = find::<Task>(world, id) else { continue };
        change(world, entity, |task: &mut Task| task.claimed_at = Some(now));
    }
}
