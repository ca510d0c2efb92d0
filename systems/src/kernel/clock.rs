//! The time of the world.

use bevy_ecs::prelude::Resource;

use agentsvc_components::Timestamp;

/// The moment of this step. Set by the world loop from the clock; goes back only when somebody sets
/// the clock back by more than [`CLOCK_JITTER_MS`](agentsvc_components::kernel::limit::CLOCK_JITTER_MS).
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now(pub Timestamp);
