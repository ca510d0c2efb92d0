//! Who waits for what others have reserved. A call that comes back costs less than was reserved for it, as a rule much
//! less; the first in line goes on as soon as there is room.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::compaction::Compaction;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::turn::{Turn, TurnState};
use agentsvc_components::usage::Scope;
use agentsvc_components::{AgentId, Micros, Timestamp};

use super::verdict::judge_at;
use super::{Budgets, Need, Verdict};
use crate::kernel::clock::Now;
use crate::kernel::index::id_of;
use crate::model::admission::{Admission, stand_in_line};

/// Milliseconds between two looks of the beat.
const LOOK_AGAIN_MS: u64 = 1_000;

/// Lets a turn or compaction wait for room at `scope`.
pub(crate) fn wait(world: &mut World, scope: Scope, entity: Entity, need: &Need) {
    leave(world, entity);
    let mut budgets = world.resource_mut::<Budgets>();
    let number = budgets.next_place;
    budgets.next_place += 1;
    budgets.waiting.entry(scope).or_default().insert(number, (entity, need.worst));
    budgets.places.insert(entity, (scope, number));
}

/// Nothing waits for room for this turn or compaction any more.
pub(crate) fn leave(world: &mut World, entity: Entity) {
    let mut budgets = world.resource_mut::<Budgets>();
    let Some((scope, number)) = budgets.places.remove(&entity) else { return };
    let Some(line) = budgets.waiting.get_mut(&scope) else { return };
    line.remove(&number);
    if line.is_empty() {
        budgets.waiting.remove(&scope);
    }
}

/// Takes a turn or compaction that ends out of the line in which it may stand, for a slot or for money.
pub(crate) fn leave_line(world: &mut World, entity: Entity) {
    world.resource_mut::<Admission>().leave(entity);
    leave(world, entity);
}

/// Puts a turn or compaction that waited for money in line again. False when it has ended or gone on meanwhile.
fn stand_again(world: &mut World, entity: Entity) -> bool {
    let turn = world.get::<Turn>(entity).filter(|turn| turn.state == TurnState::Reserving);
    let request = turn.and_then(|turn| turn.request.clone());
    let agent = turn.map(|turn| turn.agent).or_else(|| world.get::<Compaction>(entity).map(|job| job.agent));
    let provider = request.as_ref().and_then(|request| request.provider());
    agent.is_some_and(|agent| stand_in_line(world, agent, entity, provider))
}

/// A call of `agent`, which stands below `above` and belongs to `user`, or nobody's with the nil id, came back: whoever now has
/// room, or never will, stands in line again.
pub(super) fn released(world: &mut World, agent: AgentId, above: &[AgentId], user: Option<UserId>) {
    if world.resource::<Budgets>().waiting() == 0 {
        return;
    }
    for scope in Scope::path_of(agent, above, user) {
        look_again(world, scope);
    }
}

/// A turn or compaction of this agent did not take the room that it was promised: who is behind it looks again.
pub(crate) fn promise_left(world: &mut World, owner: Entity) {
    let above = super::need::above(world, owner);
    let user = super::need::user(world, owner);
    released(world, id_of(world, owner), &above, user);
}

/// On the beat, once a second: a period may be over, or one that was promised room may not have taken it.
// &mut World: asks the domains that wait for room to go on.
pub(crate) fn beat(world: &mut World) {
    let now = world.resource::<Now>().0;
    let mut budgets = world.resource_mut::<Budgets>();
    if budgets.waiting() == 0 || now.ms_since(budgets.looked_at) < LOOK_AGAIN_MS && now >= budgets.looked_at {
        return;
    }
    budgets.looked_at = now;
    let scopes: Vec<Scope> = budgets.waiting.keys().copied().collect();
    for scope in scopes {
        look_again(world, scope);
    }
}

/// When the beat looks again; `None` while nobody waits.
pub(crate) fn next_due(world: &World) -> Option<Timestamp> {
    let budgets = world.resource::<Budgets>();
    (budgets.waiting() > 0).then(|| budgets.looked_at.plus_ms(LOOK_AGAIN_MS.cast_signed()))
}

/// Puts those in line again for whom `scope` has room, the first first.
fn look_again(world: &mut World, scope: Scope) {
    let mut promised = Micros::ZERO;
    while let Some((entity, worst)) = first(world, scope) {
        let verdict = judge_at(world, scope, worst, false, promised);
        if matches!(verdict, Verdict::Wait(_)) {
            return;
        }
        leave(world, entity);
        if stand_again(world, entity) && matches!(verdict, Verdict::Fits) {
            promised = promised.plus(worst);
        }
    }
}

/// The limits of `scope` changed: everyone who waits there looks again.
pub(super) fn limits_changed(world: &mut World, scope: Scope) {
    while let Some((entity, _)) = first(world, scope) {
        leave(world, entity);
        stand_again(world, entity);
    }
}

fn first(world: &World, scope: Scope) -> Option<(Entity, Micros)> {
    world.resource::<Budgets>().waiting.get(&scope)?.values().next().copied()
}
