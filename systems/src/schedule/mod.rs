//! Schedules and cron jobs.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::{AgentId, ScheduleId};

use crate::automation::Ended;

/// Prepares a new world for schedules.
pub(crate) fn install(_: &mut World) {}

/// Sees whether anything is due.
pub(crate) fn beat(_: &mut World) {}

/// Fires what is due, as far as the step's budget goes.
pub(crate) fn fire(_: &mut World) {}

/// Is anything due that was not visited?
pub(crate) fn has_due(_: &World) -> bool {
    false
}

/// The clock was wrong by more than [`CLOCK_FAULT_MS`](agentsvc_components::limit::CLOCK_FAULT_MS) and was set back:
/// every schedule counts anew from now.
pub(crate) fn reanchor(_: &mut World) {}

/// A turn that a schedule fired has ended.
pub(crate) fn turn_ended(_: &mut World, _: ScheduleId, _: Ended) {}

/// An agent leaves the world.
pub(crate) fn agent_removed(_: &mut World, _: Entity, _: AgentId) {}
