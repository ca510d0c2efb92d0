//! Whoever waits stands in a line that somebody serves; what is out is counted once.

use std::collections::BTreeSet;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::TurnId;
use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::compaction::{Compaction, CompactionState};
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::turn::{PendingState, Turn, TurnState};

use super::stop::is_going;
use crate::budget::Budgets;
use crate::kernel::check::Faults;
use crate::model::admission::Admission;
use crate::turn::{Children, ToolLane, Waiting};
use crate::usage::Calls;

/// Says who waits in no line, and what is out without a place.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let awaited = world.resource_mut::<Waiting>().turns();
    let mut turns = world.query::<(Entity, &TurnId, &Turn)>();
    let mut jobs = world.query::<(Entity, &Compaction)>();
    let world = &*world;
    let (admission, tools) = (world.resource::<Admission>(), world.resource::<ToolLane>());
    let mut waits: BTreeSet<Entity> = admission.in_line().collect();
    waits.extend(world.resource::<Budgets>().in_line());
    let runs = |agent: Entity| world.get::<Agent>(agent).is_some_and(|agent| agent.state == AgentState::Running);
    let tool_lane: BTreeSet<(Entity, u32)> = tools.in_line().collect();
    let mut children = BTreeSet::new();
    for (entity, id, turn) in turns.iter(world) {
        let attempt = Attempt::of(*id, turn.attempt);
        match turn.state {
            TurnState::Reserving => {
                let is_served = waits.contains(&entity) || !runs(turn.agent) || is_going(world, entity);
                faults.that(is_served, || format!("turn {id}: it waits for a slot but is in no queue"));
            }
            TurnState::Calling | TurnState::Stopping => {
                faults.that(admission.is_out(attempt), || format!("turn {id}: model call {attempt:?} has no slot"));
            }
            TurnState::Queued | TurnState::WaitingForTools | TurnState::WaitingForApproval => {}
        }
        for tool in &turn.pending {
            let (in_line, out) = (tool_lane.contains(&(entity, tool.index)), tools.is_out(attempt, tool.index));
            let is_served = match tool.state {
                PendingState::Waiting => in_line,
                PendingState::Out => in_line || out,
                PendingState::Adopted(_) | PendingState::Gated(_) => true,
            };
            let is_served = is_served || is_going(world, entity);
            faults.that(is_served, || format!("turn {id}: the call at row {} is in no queue", tool.index));
        }
        if let Some(link) = &turn.link {
            children.insert((link.agent, entity));
        }
    }
    for (entity, job) in jobs.iter(world) {
        let is_served = job.state != CompactionState::Reserving || waits.contains(&entity) || !runs(job.agent);
        faults.that(is_served, || format!("a compaction of {:?} is in no queue", job.session));
    }
    let is_reserving = |entity: &Entity| {
        world.get::<Turn>(*entity).is_some_and(|turn| turn.state == TurnState::Reserving)
            || world.get::<Compaction>(*entity).is_some_and(|job| job.state == CompactionState::Reserving)
    };
    let gone = admission.in_line().filter(|entity| !is_reserving(entity)).count();
    faults.that(gone == 0, || format!("{gone} turns are queued for a slot but do not need one"));
    let is_asked = |entity: Entity, row: u32| {
        world.get::<Turn>(entity).is_some_and(|turn| turn.pending.iter().any(|tool| tool.index == row))
    };
    let gone = tool_lane.iter().filter(|(entity, row)| !is_asked(*entity, *row)).count();
    faults.that(gone == 0, || format!("{gone} queued tool calls belong to turns that do not wait for one"));
    faults.same("children of agents", &world.resource::<Children>().all(), &children);
    let gone = awaited.iter().filter(|turn| world.get::<Turn>(**turn).is_none()).count();
    faults.that(gone == 0, || format!("{gone} callers wait for turns that do not exist"));
    let (slots, calls) = (admission.attempts(), world.resource::<Calls>().attempts());
    faults.same("active model calls and their records", &slots, &calls);
}
