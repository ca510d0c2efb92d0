//! What tasks cost in a UTC day: all turns with the label of guests, which every task has and hands on to what it begins.

use bevy_ecs::prelude::{Entity, World};
use uuid::Uuid;

use agentsvc_components::a2a::{A2aDay, A2aDayId, A2aTask};
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::turn::Turn;
use agentsvc_components::{Micros, Refusal, Timestamp};

use super::error_codes;
use super::index::{Days, Tasks};
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, state};
use crate::kernel::index;
use crate::kernel::outbox::Emit;
use crate::taint;
use crate::turn::TurnClosed;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The day of a moment.
fn day_of(at: Timestamp) -> A2aDayId {
    A2aDayId(Uuid::from_u128(at.0.div_euclid(DAY_MS).unsigned_abs().into()))
}

/// What ended turns have cost today.
pub(super) fn spent(world: &World) -> Micros {
    state::<A2aDay>(world, day_of(world.resource::<Now>().0)).map_or(Micros::ZERO, |day| day.cost)
}

/// Refuses another task when what was spent today, and what the open ones have cost so far, leave nothing of the limit.
pub(super) fn check(world: &World, limit: Micros) -> Result<(), Refusal> {
    let cost_of = |id| {
        let turn = index::turn(world, state::<A2aTask>(world, id)?.turn)?;
        Some(world.get::<Turn>(turn)?.usage.cost)
    };
    let open = world.resource::<Tasks>().open().filter_map(|(_, id)| cost_of(id));
    if limit.is_zero() || open.fold(spent(world), Micros::plus) < limit {
        return Ok(());
    }
    let now = world.resource::<Now>().0.0;
    let left_ms = DAY_MS - now.rem_euclid(DAY_MS);
    let refusal = Refusal::of(error_codes::A2A_BUDGET_EXCEEDED, "the daily limit of A2A tasks is used up");
    Err(Refusal { retry_after_secs: u32::try_from(left_ms / 1_000 + 1).ok(), ..refusal })
}

/// A turn ends: what it cost counts if a task began it, or anything that a task began, whether that is still there or not.
pub(super) fn turn_closed(world: &mut World, closed: &TurnClosed) {
    let Some(entity) = index::turn(world, closed.turn) else { return };
    let cost = world.get::<Turn>(entity).map_or(Micros::ZERO, |turn| turn.usage.cost);
    if !cost.is_zero() && taint::of(world, entity).holds(Taint::GUEST) {
        add(world, cost);
    }
}

fn add(world: &mut World, cost: Micros) {
    let today = day_of(world.resource::<Now>().0);
    if let Some(entity) = world.resource::<Days>().get(today) {
        return change(world, entity, |day: &mut A2aDay| day.cost = day.cost.plus(cost));
    }
    let others: Vec<Entity> = world.resource::<Days>().after(None).map(|(_, entity)| entity).collect();
    for other in others {
        world.despawn(other);
    }
    let entity = world.spawn((today, A2aDay { cost })).id();
    world.mark(entity);
}
