//! Keys expire, once and for all: a clock that is set back brings none back.

use agentsvc_components::Timestamp;
use agentsvc_components::people::ApiKey;
use bevy_ecs::prelude::World;

use super::index::Keys;
use super::limits;
use crate::kernel::entities::change;

/// When the next key expires.
pub(super) fn next_due(world: &World) -> Option<Timestamp> {
    world.resource::<Keys>().first_end().map(|(at, _)| at)
}

/// Notes keys whose time is over; a bounded number.
pub(super) fn beat(world: &mut World, now: Timestamp) {
    for _ in 0..limits::KEYS_EXPIRED_AT_ONCE_MAX {
        let over = world.resource::<Keys>().first_end().filter(|(at, _)| *at <= now);
        let Some(entity) = over.and_then(|(_, id)| world.resource::<Keys>().get(id)) else { return };
        change(world, entity, |key: &mut ApiKey| key.expired = true);
    }
}
