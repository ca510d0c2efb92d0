//! Who acts: whoever sent the command that is being carried out, else the daemon itself.

use bevy_ecs::prelude::Resource;

use agentsvc_components::Actor;

/// Who acts now.
#[derive(Resource, Clone, Copy, Default)]
pub(crate) struct Acting(pub(crate) Actor);
