//! Messages that are only passed on to another chat of their instance. The rules for who may write hold for them as for all.

use agentsvc_components::Refusal;
use agentsvc_components::channel::message::ChatEvent;
use agentsvc_components::channel::rules::InstanceRules;
use agentsvc_components::channel::send::{SendCause, SendContent};
use bevy_ecs::prelude::World;

use super::index::Conversations;
use super::post::{self, Outgoing, post_or_refuse};
use super::receive::{Received, Why, joined};
use super::rules;
use super::talk::{Place, enter};

/// Refuses a message that is to be passed on and for which there is no room. It changes nothing, so that it may come again.
pub(super) fn admit(world: &mut World, of: &InstanceRules, event: &ChatEvent) -> Result<(), Refusal> {
    let Some(to) = &event.deliver_to else { return Ok(()) };
    let known = world.resource::<Conversations>().find(&of.name, passed_to(of, event, to), None);
    post::admit(world, known, &passed(event))
}

/// The chat that a message is passed on to.
fn passed_to<'e>(of: &'e InstanceRules, event: &'e ChatEvent, to: &'e str) -> &'e str {
    Some(to).filter(|to| !to.is_empty()).or(of.default_conversation.as_deref()).unwrap_or(&event.chat)
}

/// What is passed on of a message.
fn passed(event: &ChatEvent) -> SendContent {
    SendContent { text: joined(&event.text, event.files.as_deref()), content: None }
}

/// Passes a message on to another chat of its instance, one that the configuration names.
pub(super) fn relay(world: &mut World, of: &InstanceRules, event: &ChatEvent, to: &str) -> Received {
    let to = passed_to(of, event, to);
    if *to != *event.chat && !rules::may_send_to(of, to) {
        return Received::Ignored(Why::Denied);
    }
    let Some(id) = enter(world, &Place { instance: of, chat: to, thread: None }, None) else {
        return Received::Ignored(Why::Full);
    };
    let out = Outgoing { cause: SendCause::Relay, what: passed(event), ..Outgoing::default() };
    post_or_refuse(world, id, out).map_or(Received::Ignored(Why::Full), Received::Relayed)
}
