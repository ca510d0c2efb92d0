//! Counts what other domains say that happened.

use bevy_ecs::prelude::World;

use agentsvc_components::Timestamp;
use agentsvc_components::history::{Activity, SweepHistory};
use agentsvc_components::turn::{Origin, TurnEnd};
use agentsvc_components::usage::CallEnd;

use super::hours::History;
use crate::config::Settings;
use crate::kernel::clock::Now;
use crate::kernel::outbox::{Emit, Outbox};
use crate::kernel::reaction::on;
use crate::model::admission::Admission;
use crate::turn::{MessageCame, ToolCallEnded, TurnClosed};
use crate::usage::CallBooked;
use crate::usage::calendar;

/// Prepares a new world for its history.
pub(super) fn install(world: &mut World) {
    world.init_resource::<History>();
    on(world, |world, closed: &TurnClosed| {
        let ms = world.resource::<Now>().0.ms_since(closed.since);
        count(world, |minute| {
            minute.lasted(ms);
            match closed.end {
                TurnEnd::Done => minute.turns_completed += 1,
                TurnEnd::Failed => minute.turns_failed += 1,
                TurnEnd::Stopped => minute.turns_stopped += 1,
                TurnEnd::Interrupted => minute.turns_interrupted += 1,
            }
        });
    });
    on(world, |world, call: &CallBooked| {
        count(world, |minute| {
            minute.model_calls += 1;
            minute.model_calls_failed += u64::from(matches!(call.end, CallEnd::Failed | CallEnd::Unknown));
            minute.input_tokens = minute.input_tokens.saturating_add(call.usage.input_tokens);
            minute.output_tokens = minute.output_tokens.saturating_add(call.usage.output_tokens);
            minute.cost = minute.cost.plus(call.usage.cost);
        });
    });
    on(world, |world, call: &ToolCallEnded| {
        count(world, |minute| {
            minute.tool_calls += 1;
            minute.tool_calls_failed += u64::from(call.is_error);
        });
    });
    on(world, |world, message: &MessageCame| count(world, |minute| *way(minute, message.0) += 1));
}

/// Where messages of that origin are counted.
const fn way(minute: &mut Activity, origin: Origin) -> &mut u64 {
    match origin {
        Origin::Api | Origin::WebSocket | Origin::OpenAi => &mut minute.client_messages,
        Origin::Channel { .. } => &mut minute.chat_messages,
        Origin::Agent { .. } | Origin::Peer | Origin::A2a { .. } => &mut minute.agent_messages,
        Origin::Trigger { .. }
        | Origin::Schedule { .. }
        | Origin::Workflow { .. }
        | Origin::Dream { .. }
        | Origin::Hook { .. } => &mut minute.automatic_messages,
    }
}

/// Counts something in the minute that is under way, and closes the hour before it when that is another one.
fn count(world: &mut World, what: impl FnOnce(&mut Activity)) {
    let now = world.resource::<Now>().0;
    let ops = world.resource_mut::<History>().turn_to(calendar::minute(now));
    if !ops.is_empty() {
        world.resource_mut::<Outbox>().ops.extend(ops);
    }
    what(world.resource_mut::<History>().newest());
}

/// At the end of a step: notes how many turns wait, and writes the minute that changed.
// &mut World: leaves records and an effect in the outbox beside its own resource.
pub(super) fn store_dirty(world: &mut World) {
    let waiting = world.resource::<Admission>().waiting() as u64;
    if waiting > 0 && world.resource::<History>().has_news(calendar::minute(world.resource::<Now>().0), waiting) {
        count(world, |minute| minute.turns_waiting_max = minute.turns_waiting_max.max(waiting));
    }
    let Some(op) = world.resource_mut::<History>().store_dirty() else { return };
    world.op(op);
    sweep(world);
}

/// Has what is too old erased, when something is stored on another day than the last time.
fn sweep(world: &mut World) {
    let today = calendar::day(world.resource::<Now>().0);
    if world.resource_mut::<History>().swept.replace(today) == Some(today) {
        return;
    }
    let first_kept = today - i64::from(world.resource::<Settings>().history_retention_days);
    world.effect(SweepHistory(Timestamp(first_kept.saturating_mul(calendar::DAY_MS))));
}
