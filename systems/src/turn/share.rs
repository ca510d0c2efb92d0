//! Shares of the open turns: so that no user and no family of agents takes the room of all others, each may have a part of it.

use std::collections::BTreeMap;

use agentsvc_components::Refusal;
use agentsvc_components::kernel::limit;
use agentsvc_components::turn::Turn;
use agentsvc_components::turn::error_codes::TURNS_FULL;
use bevy_ecs::prelude::{Entity, Resource, World};

use crate::agent::holder_of;
use crate::kernel::check::Faults;
use crate::kernel::share::{Shares, whose};

/// Seconds after which those of a full share may try again.
const RETRY_SECS: u32 = 5;

/// The open turns of each holder. Kept by the hooks of their ids.
#[derive(Resource, Default)]
pub(super) struct OpenTurns(pub(super) Shares);

/// Refuses a further turn of an agent whose user or family has as many as it may.
pub(super) fn admit(world: &World, owner: Entity) -> Result<(), Refusal> {
    let holder = holder_of(world, owner);
    if world.resource::<OpenTurns>().0.has_place(limit::TURNS_OPEN_MAX, Some(holder)) {
        return Ok(());
    }
    let most = limit::TURNS_OPEN_MAX / limit::POOL_SHARES;
    let text = format!("{} may have at most {most} open turns together; wait for some to end", whose(holder));
    Err(Refusal { retry_after_secs: Some(RETRY_SECS), ..Refusal::of(TURNS_FULL, text) })
}

/// Says whose turns are not counted right.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let (mut turns, mut counts, mut scan) = (world.query::<&Turn>(), BTreeMap::new(), Shares::default());
    turns.iter(world).for_each(|turn| *counts.entry(turn.holder).or_insert(0) += 1);
    counts.into_iter().for_each(|(holder, count)| scan.add(Some(holder), count, 0));
    faults.same("open turns of users and families", &world.resource::<OpenTurns>().0, &scan);
}
