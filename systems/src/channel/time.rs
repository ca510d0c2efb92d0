//! Messages whose time has come, and those whose turns did not come back with a restart.

use agentsvc_components::Timestamp;
use agentsvc_components::channel::ChatMessageId;
use agentsvc_components::channel::message::{ChatMessage, ChatMessageState};
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::TurnEnd;
use bevy_ecs::prelude::{Resource, World};

use super::begin::begin;
use super::index::{Messages, Pairings};
use super::{end, limits, pair, precheck, strangers};
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, find, state};
use crate::kernel::index;
use crate::kernel::record::Error;
use crate::kernel::restore::Records;

/// Messages without their turns after a restart. The end of a turn that ended while the world came back is told first.
#[derive(Resource, Default)]
pub(super) struct Lost(Vec<ChatMessageId>);

impl Lost {
    pub(super) fn has(&self, id: ChatMessageId) -> bool {
        self.0.contains(&id)
    }
}

/// Once every turn is back: finds the messages that have none.
pub(super) fn restored(world: &mut World, _: &mut Records) -> Result<(), Error> {
    let is_lost = |id: &ChatMessageId| match state::<ChatMessage>(world, *id).map(|message| &message.state) {
        Some(ChatMessageState::Checking { turn, .. } | ChatMessageState::Answering { turn, .. }) => {
            index::turn(world, *turn).is_none()
        }
        Some(ChatMessageState::Waiting { .. } | ChatMessageState::Command(_)) | None => false,
    };
    let lost = world.resource::<Messages>().after(None).map(|(id, _)| id).filter(is_lost).collect();
    world.resource_mut::<Lost>().0 = lost;
    // The clock may have been set back meanwhile.
    clock_set_back(world);
    Ok(())
}

/// Are there messages that wait for turns that are gone?
pub(super) fn has_work(world: &World) -> bool {
    !world.resource::<Lost>().0.is_empty()
}

/// Their turns have failed.
// &mut World: settling ends messages through the hooks of their kind.
pub(super) fn settle_lost(world: &mut World) {
    for id in std::mem::take(&mut world.resource_mut::<Lost>().0) {
        end::settle(world, id, TurnEnd::Failed, "the turn no longer exists", None, Usage::default());
    }
}

/// When a message has waited long enough, a code is void, or a conversation of strangers is old.
pub(super) fn next_due(world: &World) -> Option<Timestamp> {
    let message = world.resource::<Messages>().first_due().map(|(at, _)| at);
    let void = world.resource::<Pairings>().first_void().map(|(at, _)| at);
    let late = world.resource::<Messages>().deadlines().next().map(|(at, _)| at);
    message.into_iter().chain(void).chain(late).chain(strangers::next_due(world)).min()
}

/// Begins the turns of messages that have waited long enough, and lets go what is old; a bounded number.
// &mut World: begins turns.
pub(super) fn beat(world: &mut World) {
    let now = world.resource::<Now>().0;
    for _ in 0..limits::CHAT_BEAT_MAX {
        let due = world.resource::<Messages>().first_due().filter(|(at, _)| *at <= now);
        let Some((_, id)) = due else { break };
        if begin(world, id).is_none() {
            break;
        }
    }
    for _ in 0..limits::CHAT_BEAT_MAX {
        let late = world.resource::<Messages>().deadlines().next().filter(|(at, _)| *at <= now);
        let Some((_, id)) = late else { break };
        end::stop_late(world, id);
    }
    pair::sweep(world);
    strangers::sweep(world);
}

/// The clock was set back: no message waits longer than it would have.
// &mut World: changes entities through the hooks of their kind.
pub(super) fn clock_set_back(world: &mut World) {
    let last = world.resource::<Now>().0.plus_ms(limits::CHAT_WAIT_MS_MAX);
    let waiting = world.resource::<Messages>().waiting().rev();
    let ahead: Vec<ChatMessageId> = waiting.take_while(|(at, _)| *at > last).map(|(_, id)| id).collect();
    for id in ahead {
        let Ok(entity) = find::<ChatMessage>(world, id) else { continue };
        change(world, entity, |message: &mut ChatMessage| message.state = ChatMessageState::Waiting { due: last });
    }
    let last = world.resource::<Now>().0.plus_ms(limits::PRECHECK_MS);
    let late = world.resource::<Messages>().deadlines().rev().take_while(|(at, _)| *at > last);
    for id in late.map(|(_, id)| id).collect::<Vec<_>>() {
        precheck::clock_set_back(world, id, last);
    }
    let last = world.resource::<Now>().0.plus_ms((limits::AUTO_REPLY_SECS_MAX * 1_000).cast_signed());
    let late = world.resource::<Messages>().deadlines().rev().take_while(|(at, _)| *at > last);
    for id in late.map(|(_, id)| id).collect::<Vec<_>>() {
        end::set_deadline(world, id, Some(last));
    }
    pair::clock_set_back(world);
    strangers::not_ahead(world);
}
