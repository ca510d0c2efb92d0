//! The task queue.

use bevy_ecs::prelude::World;

use agentsvc_components::AgentId;

/// Prepares a new world for tasks.
pub(crate) fn install(_: &mut World) {}

/// Gives back what was claimed too long ago.
pub(crate) fn beat(_: &mut World) {}

/// An agent leaves the world.
pub(crate) fn agent_removed(_: &mut World, _: AgentId) {}
