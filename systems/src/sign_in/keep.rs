//! How long sessions last.

use agentsvc_components::Timestamp;
use agentsvc_components::sign_in::{SignInId, SignInSession};
use bevy_ecs::prelude::World;

use super::index::SignIns;
use super::limits;
use super::start::end;
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, state};
use crate::kernel::record::Error;
use crate::kernel::restore::Records;
use crate::people::{GrantUsed, UserGone};

/// When the next session expires.
pub(super) fn next_due(world: &World) -> Option<Timestamp> {
    world.resource::<SignIns>().first_end().map(|(at, _)| at)
}

/// Removes sessions that have expired; a bounded number.
// &mut World: sessions go through the hooks of their kind.
pub(super) fn beat(world: &mut World) {
    let now = world.resource::<Now>().0;
    for _ in 0..limits::SIGN_INS_SWEPT_MAX {
        let over = world.resource::<SignIns>().first_end().filter(|(at, _)| *at <= now);
        let Some(entity) = over.and_then(|(_, id)| world.resource::<SignIns>().get(id)) else { return };
        world.despawn(entity);
    }
}

/// A user goes, and their sessions end.
pub(super) fn user_gone(world: &mut World, UserGone(user): &UserGone) {
    for id in world.resource::<SignIns>().of(*user) {
        end(world, id);
    }
}

/// A session was used.
pub(super) fn used(world: &mut World, GrantUsed { key, at }: &GrantUsed) {
    if let Some(entity) = world.resource::<SignIns>().get(SignInId(key.0)) {
        change(world, entity, |it: &mut SignInSession| it.used_at = it.used_at.max(Some(*at)));
    }
}

/// Behind the sessions that are restored: while the daemon was down the clock may have been set back, too.
pub(super) fn restored(world: &mut World, _: &mut Records) -> Result<(), Error> {
    clock_set_back(world);
    Ok(())
}

/// The clock was set back: no session lasts longer for it.
// &mut World: changes entities by their ids, through the hooks of their kind.
pub(super) fn clock_set_back(world: &mut World) {
    let now = world.resource::<Now>().0;
    let all: Vec<_> = world.resource::<SignIns>().after(None).collect();
    for (id, entity) in all {
        if state::<SignInSession>(world, id).is_some_and(|it| it.created_at > now) {
            change(world, entity, |it: &mut SignInSession| {
                it.expires_at = it.expires_at.plus_ms(now.0.saturating_sub(it.created_at.0));
                it.created_at = now;
            });
        }
    }
}
