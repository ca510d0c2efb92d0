//! The time of the world.

use bevy_ecs::prelude::Resource;

use agentsvc_components::Timestamp;

/// The moment of this step. Set by the world loop; never goes backwards within one process.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now(pub Timestamp);
