//! What tasks cost in a UTC day: all model calls with the label of guests, which every task has and hands on to what it begins.
//! A client that showed a key has the limit of a day for itself; all others have it together. A call counts for the client in whose
//! conversation it was begun.

use bevy_ecs::prelude::{Entity, Resource, World};
use hashbrown::HashMap;
use uuid::Uuid;

use agentsvc_components::a2a::{A2aDay, A2aDayId};
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::{Micros, Refusal, SessionId, Timestamp};

use super::index::{Days, Tasks};
use super::{error_codes, limits};
use crate::budget::CallStarts;
use crate::config::Settings;
use crate::kernel::check::Faults;
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, state};
use crate::kernel::outbox::Emit;
use crate::usage::{Calls, Rollups, SpentByStrangers, StrangersReserve};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The day of a moment.
fn day_of(at: Timestamp) -> A2aDayId {
    A2aDayId(Uuid::from_u128(at.0.div_euclid(DAY_MS).unsigned_abs().into()))
}

/// The moment at which a call counts that goes out now.
fn moment(world: &World) -> Timestamp {
    world.resource::<Rollups>().moment(world.resource::<Now>().0)
}

/// What calls that came back have cost today: those of a client that showed a key, or those of all others.
pub(super) fn spent(world: &World, client: Option<&str>) -> Micros {
    let Some(day) = state::<A2aDay>(world, day_of(moment(world))) else { return Micros::ZERO };
    // What has no place of its own counts with that of all others.
    let is_full = day.known.len() >= limits::A2A_KNOWN_CLIENTS_MAX;
    let of_others = if is_full { day.cost } else { Micros::ZERO };
    client.map_or(day.cost, |client| day.known.get(client).copied().unwrap_or(of_others))
}

/// What those of all clients have cost today.
pub(super) fn spent_by_all(world: &World) -> Micros {
    let day = state::<A2aDay>(world, day_of(moment(world)));
    day.map_or(Micros::ZERO, |day| day.known.values().fold(day.cost, |sum, cost| sum.plus(*cost)))
}

/// The client with a key in whose conversation something was begun.
fn client_of(world: &World, began_in: Option<SessionId>) -> Option<&str> {
    world.resource::<Tasks>().known_client(began_in?)
}

/// What is reserved for calls that clients began and that are out. A call counts for the client that it counted for when it went out.
#[derive(Resource, Default)]
pub(super) struct Reserved {
    /// Of each client with a key, and of all without one.
    sums: HashMap<Option<Box<str>>, Micros>,
    /// The clients of those calls that count for one with a key.
    known: HashMap<Attempt, Box<str>>,
}

/// A call goes out or is back.
pub(super) fn reserves(world: &mut World, call: &StrangersReserve) {
    if !call.strangers.holds(Taint::GUEST) {
        return;
    }
    let client: Option<Box<str>> = if call.is_over { None } else { client_of(world, call.began_in).map(Box::from) };
    let mut reserved = world.resource_mut::<Reserved>();
    if !call.is_over {
        reserved.known.extend(client.clone().map(|client| (call.attempt, client)));
        let sum = reserved.sums.entry(client).or_default();
        *sum = sum.plus(call.reserved);
        return;
    }
    let client = reserved.known.remove(&call.attempt);
    if let Some(sum) = reserved.sums.get_mut(&client) {
        *sum = sum.minus(call.reserved);
        if sum.is_zero() {
            reserved.sums.remove(&client);
        }
    }
}

/// What is reserved for calls that are out of the same client, or of all without a key.
fn reserved(world: &World, client: Option<&str>) -> Micros {
    let sums = &world.resource::<Reserved>().sums;
    sums.get(&client.map(Box::<str>::from)).copied().unwrap_or(Micros::ZERO)
}

/// Says which sum is wrong.
pub(super) fn check(world: &World, faults: &mut Faults) {
    let sum = world.resource::<Reserved>().sums.values().fold(Micros::ZERO, |sum, of| sum.plus(*of));
    faults.same("reserved for clients of A2A", &sum, &world.resource::<Calls>().reserved_of_guests());
}

/// Refuses what would cost more where what was spent today leaves nothing of the limit.
pub(super) fn admit(world: &World, client: Option<&str>, limit: Micros) -> Result<(), Refusal> {
    if limit.is_zero() || spent(world, client) < limit {
        return Ok(());
    }
    let left_ms = DAY_MS - moment(world).0.rem_euclid(DAY_MS);
    let refusal = Refusal::of(error_codes::A2A_BUDGET_EXCEEDED, "the daily limit of A2A tasks is used up");
    Err(Refusal { retry_after_secs: u32::try_from(left_ms / 1_000 + 1).ok(), ..refusal })
}

/// A model call that a client began, directly or not, is about to go out. It waits for those that are out where they and it could
/// cost more than the limit together, so that the limit is exceeded by about one call at most.
pub(super) fn call_starts(world: &World, call: &CallStarts) -> Result<(), Refusal> {
    if !call.strangers.holds(Taint::GUEST) {
        return Ok(());
    }
    let settings = world.resource::<Settings>().a2a;
    if settings.is_off {
        return Err(Refusal::of(error_codes::A2A_OFF, "a client of A2A began this, and A2A is off"));
    }
    if settings.daily_limit.is_zero() {
        return Ok(());
    }
    let client = client_of(world, call.began_in);
    admit(world, client, settings.daily_limit)?;
    let reserved = reserved(world, client);
    let together = spent(world, client).plus(reserved).plus(call.worst);
    if reserved.is_zero() || together <= settings.daily_limit {
        return Ok(());
    }
    Err(Refusal::busy("what is left of the daily limit of A2A tasks is reserved for active calls", 1))
}

/// A call has cost something: it counts if a task began it, or anything that a task began, whether that is still there or not.
pub(super) fn spent_by_strangers(world: &mut World, spent: &SpentByStrangers) {
    if spent.strangers.holds(Taint::GUEST) && !spent.cost.is_zero() {
        let client = client_of(world, spent.began_in).map(Box::from);
        add(world, day_of(spent.at), client, spent.cost);
    }
}

/// Adds to a day. Only the newest is kept; what went out on the day before counts at that.
fn add(world: &mut World, day: A2aDayId, client: Option<Box<str>>, cost: Micros) {
    let count = |day: &mut A2aDay| {
        let has_room = |client: &str| day.known.len() < limits::A2A_KNOWN_CLIENTS_MAX || day.known.contains_key(client);
        let sum = match client.filter(|client| has_room(client)) {
            Some(client) => day.known.entry(client).or_default(),
            None => &mut day.cost,
        };
        *sum = sum.plus(cost);
    };
    let known = world.resource::<Days>().after(None).next();
    if let Some((known, entity)) = known
        && known >= day
    {
        return change(world, entity, count);
    }
    let others: Vec<Entity> = world.resource::<Days>().after(None).map(|(_, entity)| entity).collect();
    for other in others {
        world.despawn(other);
    }
    let mut first = A2aDay::default();
    count(&mut first);
    let entity = world.spawn((day, first)).id();
    world.mark(entity);
}
