//! What holds of all chats ([`check`](crate::kernel::check)).

use std::collections::BTreeSet;

use agentsvc_components::SessionId;
use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::channel::message::{ChatMessage, ChatMessageState};
use agentsvc_components::channel::pairing::Pairing;
use agentsvc_components::channel::rules::ChannelInstance;
use agentsvc_components::channel::send::{Send, SendState};
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::session::Session;
use bevy_ecs::prelude::World;

use super::limits;
use super::time::Lost;
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, state};
use crate::kernel::index;
use crate::kernel::job::Jobs;

/// Says which index is wrong, which message has no turn or conversation, and which send no job.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<ChannelInstance>(world, faults, |_, _, _, _| {});
    entities::check::<Pairing>(world, faults, |_, _, _, _| {});
    let mut strangers = world.query::<(&SessionId, &Session)>();
    let began = strangers.iter(world).filter(|(_, session)| session.is_strangers && !session.ephemeral);
    let began: BTreeSet<SessionId> = began.map(|(id, _)| *id).collect();
    let mut all = world.query::<&Conversation>();
    let theirs = all.iter(world).filter(|its| its.is_strangers).flat_map(|its| &its.sessions);
    let known: BTreeSet<SessionId> = theirs.map(|its| its.session).collect();
    let unknown: Vec<_> = began.difference(&known).collect();
    faults.that(unknown.is_empty(), || format!("strangers began {unknown:?}, which no conversation of theirs knows"));
    entities::check::<Conversation>(world, faults, |_, id, its, faults| {
        let is_bounded = its.seen.len() <= limits::CONVERSATION_SEEN_MAX
            && its.sessions.len() <= limits::CONVERSATION_SESSIONS_MAX
            && its.rates.len() <= limits::CONVERSATION_SENDERS_MAX;
        faults.that(is_bounded, || format!("conversation {id} is too large"));
    });
    entities::check::<ChatMessage>(world, faults, |world, id, message, faults| {
        let has_conversation = state::<Conversation>(world, message.conversation).is_some();
        faults.that(has_conversation, || format!("message {id} of a chat: its conversation does not exist"));
        if let ChatMessageState::Checking { turn, .. } | ChatMessageState::Answering { turn, .. } = message.state {
            let has_turn = index::turn(world, turn).is_some() || world.resource::<Lost>().has(id);
            faults.that(has_turn, || format!("message {id} of a chat: its turn does not exist"));
        }
    });
    entities::check::<Send>(world, faults, |world, id, send, faults| {
        let has_conversation = state::<Conversation>(world, send.conversation).is_some();
        faults.that(has_conversation, || format!("send {id}: its conversation does not exist"));
        let (has_job, is_open) = (world.resource::<Jobs>().get(JobId(id.0)).is_some(), send.state == SendState::Queued);
        faults.that(has_job == is_open, || format!("send {id}: {:?}, with a job: {has_job}", send.state));
        faults.that(send.ended_at.is_none() == is_open, || format!("send {id}: {send:?}"));
    });
}
