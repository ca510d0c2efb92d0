//! Goals.

use std::sync::Arc;

use bevy_ecs::prelude::World;

use agentsvc_components::AgentId;

/// Prepares a new world for goals.
pub(crate) fn install(_: &mut World) {}

/// What stands of an agent's open goals in its prompt; `None` when it has none.
pub(crate) fn in_prompt(_: &World, _: AgentId) -> Option<Arc<str>> {
    None
}

/// An agent leaves the world.
pub(crate) fn agent_removed(_: &mut World, _: AgentId) {}
