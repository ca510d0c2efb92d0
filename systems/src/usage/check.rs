//! What must hold of what is spent and reserved.

use std::collections::BTreeMap;

use bevy_ecs::prelude::World;

use agentsvc_components::usage::{Bucket, Period, Scope};
use agentsvc_components::{AgentId, Micros};

use super::{Calls, Rollups, calendar};
use crate::kernel::check::Faults;
use crate::kernel::index;
use crate::people;

/// Says which sum is not the sum of its parts.
pub(crate) fn check(world: &mut World, faults: &mut Faults) {
    let rollups = world.resource::<Rollups>();
    let mut reserved: BTreeMap<(Scope, Period, i64), Micros> = BTreeMap::new();
    for call in world.resource::<Calls>().all().filter(|call| !call.reserved.is_zero()) {
        for scope in call.scopes() {
            if !lives(world, scope) {
                // What is reserved for an agent or a user that is gone went with it.
                continue;
            }
            for period in [Period::Daily, Period::Monthly] {
                let place = reserved.entry((scope, period, calendar::index(period, call.at))).or_default();
                *place = place.plus(call.reserved);
            }
        }
    }
    faults.same("what is reserved", &rollups.all_reserved(), &reserved);
    let mut below: BTreeMap<(AgentId, Period, i64), Micros> = BTreeMap::new();
    for call in world.resource::<Calls>().all().filter(|call| !call.reserved.is_zero()) {
        for agent in call.above.iter().filter(|agent| index::agent(world, **agent).is_ok()) {
            for period in [Period::Daily, Period::Monthly] {
                let place = below.entry((*agent, period, calendar::index(period, call.at))).or_default();
                *place = place.plus(call.reserved);
            }
        }
    }
    faults.same("what descendants have reserved", &rollups.families.reserved(), &below);
    for (agent, _) in rollups.families.stored() {
        faults.that(index::agent(world, agent).is_ok(), || format!("usage below {agent}: the agent does not exist"));
    }
    let days = rollups.sums().filter(|(bucket, _)| matches!(bucket, Bucket::Day(_))).map(|(_, sum)| sum.requests);
    let models =
        rollups.sums().filter(|(bucket, _)| matches!(bucket, Bucket::ModelDay(..))).map(|(_, sum)| sum.requests);
    faults.same("calls by day, and by model and day", &days.sum::<u64>(), &models.sum::<u64>());
    for (scope, _) in rollups.scopes() {
        faults.that(lives(world, scope), || format!("usage of {scope}: the agent or user does not exist"));
    }
}

/// Is the agent or the user there whose scope it is?
fn lives(world: &World, scope: Scope) -> bool {
    scope.agent().is_none_or(|agent| index::agent(world, agent).is_ok())
        && scope.user().is_none_or(|user| people::lives(world, user))
}
