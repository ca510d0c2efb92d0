//! Who waits for what others have reserved. A call that comes back costs less than was reserved for it, as a rule much
//! less; the first in line goes on as soon as there is room.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::usage::Scope;
use agentsvc_components::{AgentId, Micros};

use super::verdict::judge_at;
use super::{Budgets, Need, Verdict};
use crate::turn;

/// Lets a turn or compaction wait for room at `scope`.
pub(crate) fn wait(world: &mut World, scope: Scope, entity: Entity, need: &Need) {
    let mut budgets = world.resource_mut::<Budgets>();
    budgets.waiting.entry(scope).or_default().push_back((entity, need.worst));
    budgets.waiting_count += 1;
}

/// A call of `agent` came back: whoever now has room, or never will, stands in line again.
pub(crate) fn released(world: &mut World, agent: AgentId) {
    if world.resource::<Budgets>().waiting_count == 0 {
        return;
    }
    for scope in Scope::Agent(agent).path() {
        let mut promised = Micros::ZERO;
        while let Some((entity, worst)) = first(world, scope) {
            match judge_at(world, scope, worst, false, promised) {
                Verdict::Wait(_) => break,
                Verdict::Fits => promised = promised.plus(worst),
                Verdict::Over(_) => {}
            }
            take(world, scope);
            turn::stand_again(world, entity);
        }
    }
}

/// The limits of `scope` changed: everyone who waits there looks again.
pub(super) fn limits_changed(world: &mut World, scope: Scope) {
    while let Some((entity, _)) = first(world, scope) {
        take(world, scope);
        turn::stand_again(world, entity);
    }
}

fn first(world: &World, scope: Scope) -> Option<(Entity, Micros)> {
    world.resource::<Budgets>().waiting.get(&scope)?.front().copied()
}

fn take(world: &mut World, scope: Scope) {
    let mut budgets = world.resource_mut::<Budgets>();
    let Some(line) = budgets.waiting.get_mut(&scope) else { return };
    line.pop_front();
    if line.is_empty() {
        budgets.waiting.remove(&scope);
    }
    budgets.waiting_count = budgets.waiting_count.saturating_sub(1);
}
