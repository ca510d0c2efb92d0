//! Calls whose turns did not come back with a restart, and calls that take too long, waited or were kept long enough.

use bevy_ecs::prelude::{Resource, World};

use agentsvc_components::Timestamp;
use agentsvc_components::hook::{HookCall, HookCallId, HookState};

use super::end::{End, forget, settle};
use super::index::Calls;
use super::{limits, wake};
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, find, state};
use crate::kernel::index;
use crate::kernel::record::Error;
use crate::kernel::restore::Records;
use crate::turn::stop_turn;

/// Running calls without a turn after a restart. The end of a turn that ended while the world came back is told first.
#[derive(Resource, Default)]
pub(super) struct Lost(Vec<HookCallId>);

impl Lost {
    pub(super) fn has(&self, id: HookCallId) -> bool {
        self.0.contains(&id)
    }
}

/// Once every turn is back: finds the calls that have none.
pub(super) fn restored(world: &mut World, _: &mut Records) -> Result<(), Error> {
    let is_lost = |id: &HookCallId| {
        let call = state::<HookCall>(world, *id).filter(|call| call.state == HookState::Running);
        call.is_some_and(|call| call.turn.is_none_or(|turn| index::turn(world, turn).is_none()))
    };
    let lost: Vec<HookCallId> = world.resource::<Calls>().due().map(|(_, id)| id).filter(is_lost).collect();
    world.resource_mut::<Lost>().0 = lost;
    // The clock may have been set back meanwhile.
    clock_set_back(world);
    Ok(())
}

/// Are there calls that wait for turns that are gone?
pub(super) fn has_work(world: &World) -> bool {
    !world.resource::<Lost>().0.is_empty()
}

/// They fail.
// &mut World: settling ends calls through the hooks of their kind.
pub(super) fn settle_lost(world: &mut World) {
    for id in std::mem::take(&mut world.resource_mut::<Lost>().0) {
        settle(world, id, HookState::Failed, End::bare("the turn of the call no longer exists"));
    }
}

/// When a call has been open, or kept, for too long.
pub(super) fn next_due(world: &World) -> Option<Timestamp> {
    let calls = world.resource::<Calls>();
    let open = calls.due().next().map(|(at, _)| at);
    let ended = calls.ended().next().map(|(at, _)| at.plus_ms(limits::HOOK_CALL_KEPT_MS));
    open.into_iter().chain(ended).min()
}

/// Ends calls that have been open for too long, wakes agents for those that have waited long enough, and lets those go that
/// have ended long ago; a bounded number.
// &mut World: calls end and go through the hooks of their kind.
pub(super) fn beat(world: &mut World) {
    let now = world.resource::<Now>().0;
    let calls = world.resource::<Calls>();
    let due = calls.due().take_while(|(at, _)| *at <= now).map(|(_, id)| id);
    let due: Vec<HookCallId> = due.take(limits::HOOK_CALLS_SWEPT_MAX).collect();
    let old = calls.ended().take_while(|(at, _)| at.plus_ms(limits::HOOK_CALL_KEPT_MS) <= now).map(|(_, id)| id);
    let old: Vec<HookCallId> = old.take(limits::HOOK_CALLS_SWEPT_MAX).collect();
    for id in due {
        let Some(call) = state::<HookCall>(world, id) else { continue };
        match (call.state, call.turn) {
            (HookState::Waiting, _) => wake::heartbeat(world, call.agent),
            (_, turn) => {
                settle(world, id, HookState::TimedOut, End::bare("the turn took too long and was stopped"));
                turn.into_iter().for_each(|turn| stop_turn(world, turn));
            }
        }
    }
    old.into_iter().for_each(|id| forget(world, id));
}

/// The clock was set back: what came or ended in a time that it has left counts from now.
// &mut World: changes entities by their ids, through the hooks of their kind.
pub(super) fn clock_set_back(world: &mut World) {
    let now = world.resource::<Now>().0;
    let calls = world.resource::<Calls>();
    let ended = calls.ended().rev().take_while(|(at, _)| *at > now).map(|(_, id)| id);
    let ahead: Vec<HookCallId> = calls.due().map(|(_, id)| id).chain(ended).collect();
    for id in ahead {
        let is_ahead = |call: &HookCall| call.created_at > now || call.ended_at.is_some_and(|at| at > now);
        let Ok(entity) = find::<HookCall>(world, id) else { continue };
        if world.get::<HookCall>(entity).is_some_and(is_ahead) {
            change(world, entity, |call: &mut HookCall| {
                call.created_at = call.created_at.min(now);
                call.ended_at = call.ended_at.map(|at| at.min(now));
            });
        }
    }
}
