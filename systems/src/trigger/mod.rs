//! Triggers.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::event::Happened;
use agentsvc_components::{AgentId, TriggerId};

use crate::automation::Ended;

/// Prepares a new world for triggers.
pub(crate) fn install(_: &mut World) {}

/// Events meet the triggers that wait for them. Each event comes here once, in the step in which it happened.
pub(crate) fn match_events(_: &mut World, _: &[Happened]) {}

/// Fires what has matched, as far as the step's budget goes.
pub(crate) fn deliver(_: &mut World) {}

/// Do matches wait to be delivered?
pub(crate) fn has_waiting(_: &World) -> bool {
    false
}

/// A turn that a trigger fired has ended.
pub(crate) fn turn_ended(_: &mut World, _: TriggerId, _: Ended) {}

/// An agent leaves the world.
pub(crate) fn agent_removed(_: &mut World, _: Entity, _: AgentId) {}
