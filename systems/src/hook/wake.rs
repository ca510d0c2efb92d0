//! Wakes that wait: they are told together, in one turn, when a schedule wakes their agent, or when they have waited for long.

use std::collections::BTreeSet;

use bevy_ecs::prelude::{Resource, World};

use agentsvc_components::hook::{HookCall, HookCallId, HookState};
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::message::Block;
use agentsvc_components::turn::Origin;
use agentsvc_components::{AgentId, Refusal};

use super::end::{End, settle};
use super::index::Calls;
use super::limits;
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, find, state};
use crate::turn::{NewMessage, take};

/// Agents that a schedule has woken in this step, or that have been waited for long enough.
#[derive(Resource, Default)]
pub(super) struct Woken(BTreeSet<AgentId>);

/// A schedule wakes an agent.
pub(super) fn heartbeat(world: &mut World, agent: AgentId) {
    if !world.resource::<Calls>().waiting(agent).is_empty() {
        world.resource_mut::<Woken>().0.insert(agent);
    }
}

pub(super) fn has_work(world: &World) -> bool {
    !world.resource::<Woken>().0.is_empty()
}

/// Begins the turns of agents that were woken.
// &mut World: turns begin through the door of all messages.
pub(super) fn wake(world: &mut World) {
    while let Some(agent) = world.resource_mut::<Woken>().0.pop_first() {
        let waiting = world.resource::<Calls>().waiting(agent);
        if begin(world, agent, &waiting).is_err() {
            // Their agent takes no message now: they wait on.
            let now = world.resource::<Now>().0;
            change_each(world, &waiting, |call| call.created_at = now);
        }
    }
}

/// Tells an agent all that waits for it, in one turn of its current session.
fn begin(world: &mut World, agent: AgentId, waiting: &[HookCallId]) -> Result<(), Refusal> {
    let mut calls: Vec<&HookCall> = waiting.iter().filter_map(|id| state::<HookCall>(world, *id)).collect();
    // In the order in which they came; their ids say nothing of it.
    calls.sort_by_key(|call| call.created_at);
    let Some(first) = waiting.first() else { return Ok(()) };
    let taint = calls.iter().fold(Taint::NONE, |taint, call| taint.with(call.taint));
    let texts: Vec<&str> = calls.iter().map(|call| &*call.message).collect();
    let text = texts.join("\n\n");
    let origin = Origin::Hook { call: *first };
    let message = NewMessage { blocks: vec![Block::Text { text }], origin, taint, ..NewMessage::default() };
    let (_, taken) = take(world, agent, None, message, false, None)?;
    let now = world.resource::<Now>().0;
    change_each(world, waiting, |call| {
        (call.state, call.message) = (HookState::Running, Box::default());
        (call.session, call.turn) = (Some(taken.session), Some(taken.turn));
        (call.created_at, call.timeout_ms) = (now, limits::HOOK_OPEN_MS_MAX);
    });
    Ok(())
}

fn change_each(world: &mut World, ids: &[HookCallId], to: impl Fn(&mut HookCall)) {
    for id in ids {
        if let Ok(entity) = find::<HookCall>(world, *id) {
            change(world, entity, &to);
        }
    }
}

/// What waits for an agent that is removed ends.
pub(super) fn agent_removed(world: &mut World, agent: AgentId) {
    world.resource_mut::<Woken>().0.remove(&agent);
    for id in world.resource::<Calls>().waiting(agent) {
        settle(world, id, HookState::Failed, End::bare("the agent was removed"));
    }
}
