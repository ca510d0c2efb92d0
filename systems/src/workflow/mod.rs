//! Workflows.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::{AgentId, RunId};

use crate::automation::Ended;

/// Prepares a new world for workflows.
pub(crate) fn install(_: &mut World) {}

/// Sees which steps have run out of time and which are to be tried again.
pub(crate) fn beat(_: &mut World) {}

/// Moves the runs that can go on.
pub(crate) fn advance(_: &mut World) {}

/// Can a run go on?
pub(crate) fn has_work(_: &World) -> bool {
    false
}

/// The turn of a step has ended.
pub(crate) fn turn_ended(_: &mut World, _: RunId, _: u16, _: Ended) {}

/// An agent leaves the world.
pub(crate) fn agent_removed(_: &mut World, _: Entity, _: AgentId) {}
