//! Messages that are only passed on to another chat, of their instance or of another one. The rules for who may write hold for them
//! as for all.

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
    let goal = event.deliver_to.as_ref().and_then(|to| goal(world, of, event, to));
    let Some((instance, chat)) = goal else { return Ok(()) };
    let known = world.resource::<Conversations>().find(&instance.name, &chat, None);
    post::admit(world, known, &passed(event))
}

/// The instance and the chat that a message is passed on to. The configuration names the chat; one of another instance, which is
/// named by that, must be its default conversation and one to send to.
fn goal(world: &World, of: &InstanceRules, event: &ChatEvent, to: &str) -> Option<(InstanceRules, Box<str>)> {
    let own = Some(to).filter(|to| !to.is_empty()).or(of.default_conversation.as_deref()).unwrap_or(&event.chat);
    if *own == *event.chat || rules::may_send_to(of, own) {
        return Some((of.clone(), own.into()));
    }
    let other = rules::of(world, to)?;
    let chat = other.default_conversation.clone()?;
    rules::is_listed(&other, &chat).then_some((other, chat))
}

/// What is passed on of a message.
fn passed(event: &ChatEvent) -> SendContent {
    SendContent { text: joined(&event.text, event.files.as_deref()), content: None }
}

/// Passes a message on to another chat, one that the configuration names.
pub(super) fn relay(world: &mut World, of: &InstanceRules, event: &ChatEvent, to: &str) -> Received {
    let Some((instance, chat)) = goal(world, of, event, to) else { return Received::Ignored(Why::Denied) };
    let Some(id) = enter(world, &Place { instance: &instance, chat: &chat, thread: None }, None) else {
        return Received::Ignored(Why::Full);
    };
    let out = Outgoing { cause: SendCause::Relay, what: passed(event), ..Outgoing::default() };
    post_or_refuse(world, id, out).map_or(Received::Ignored(Why::Full), Received::Relayed)
}
