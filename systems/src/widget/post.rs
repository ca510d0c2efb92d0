//! Messages come into the conversation of a visitor.

use agentsvc_components::Refusal;
use agentsvc_components::channel::message::ChatEvent;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::widget::{WebMessage, WebMessageId};
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use super::index::{Share, WebMessages};
use super::limits;
use crate::channel::error_codes::CHANNEL_NOT_FOUND;
use crate::channel::{self, Kept, ReceiveMessage, Received, Why};
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::state;
use crate::kernel::id_generator::mint;
use crate::kernel::outbox::Emit;

/// A visitor writes: `event.chat` is the visitor, `event.message_id` what the page knows the message by. Its turn begins as that
/// of any chat, and the message is kept with the reply. What is not kept may be tried again, also after a refusal (429).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PostWebMessage {
    /// The name of the site.
    pub site: Box<str>,
    /// The message.
    pub event: ChatEvent,
}

command! {
    write "post_web_message" PostWebMessage => WebPost, Root, |it, world| Answer::stored(post(world, it))
}

/// What became of a visitor's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebPost {
    /// It is kept.
    Kept,
    /// It was kept before.
    Repeated,
    /// There were too many; it is not kept.
    TooMany,
    /// It gets no answer: no agent is there, or the site does not take it. It is not kept.
    Unanswered,
}

fn post(world: &mut World, PostWebMessage { site, event }: PostWebMessage) -> Result<WebPost, Refusal> {
    let name = event.message_id.clone().unwrap_or_default();
    if is_known(world, &site, &event.chat, &name) {
        return Ok(WebPost::Repeated);
    }
    let message = WebMessage {
        site: site.clone(),
        visitor: event.chat.clone(),
        name: name.clone(),
        is_visitors: true,
        text: event.text.clone(),
        at: world.resource::<Now>().0,
    };
    // An answer that comes at once stands behind it.
    let id = mint(world, Slot::ROOT);
    let received = match channel::receive(world, ReceiveMessage { instance: site, event }) {
        // The world was restored a moment ago, or the site is being taken away.
        Err(refusal) if refusal.code == Some(CHANNEL_NOT_FOUND) => return Ok(WebPost::Unanswered),
        received => received?,
    };
    let became = match received {
        // It was kept so long ago that it is gone.
        Received::Duplicate => return Ok(WebPost::Repeated),
        Received::Ignored(Why::Rate | Why::Loop | Why::Full) => WebPost::TooMany,
        Received::Ignored(_) | Received::Answered { send: None, .. } => WebPost::Unanswered,
        _ => {
            keep(world, id, message);
            return Ok(WebPost::Kept);
        }
    };
    channel::forget_message(world, &message.site, &message.visitor, &name);
    Ok(became)
}

/// Is a message of this name in the conversation?
fn is_known(world: &World, site: &str, visitor: &str, name: &str) -> bool {
    let own = world.resource::<WebMessages>().of_visitor(site, visitor);
    let named = |id: &WebMessageId| state::<WebMessage>(world, *id).is_some_and(|message| *message.name == *name);
    own.is_some_and(|own| own.ids.iter().any(named))
}

/// The answer of an agent, or what else is sent to a visitor, comes into the conversation in the step that sends it.
pub(super) fn keep_answer(world: &mut World, kept: &Kept) {
    let message = WebMessage {
        site: kept.instance.clone(),
        visitor: kept.chat.clone(),
        name: kept.name.clone(),
        is_visitors: false,
        text: kept.text.clone(),
        at: world.resource::<Now>().0,
    };
    let id = mint(world, Slot::ROOT);
    keep(world, id, message);
}

fn keep(world: &mut World, id: WebMessageId, message: WebMessage) {
    let (site, visitor) = (message.site.clone(), message.visitor.clone());
    let entity = world.spawn((id, message)).id();
    world.mark(entity);
    let of_visitor = |all: &WebMessages| {
        let own = all.of_visitor(&site, &visitor)?;
        oldest(own, limits::VISITOR_MESSAGES_MAX, limits::VISITOR_MESSAGES_BYTES_MAX)
    };
    let of_site = |all: &WebMessages| {
        let own = all.of_site(&site)?;
        oldest(own, limits::SITE_MESSAGES_MAX, limits::SITE_MESSAGES_BYTES_MAX)
    };
    while let Some(oldest) = of_visitor(world.resource()).or_else(|| of_site(world.resource())) {
        let Some(entity) = world.resource::<WebMessages>().get(oldest) else { return };
        world.despawn(entity);
    }
}

/// The oldest of a share that has more than it may.
fn oldest(share: &Share, count: usize, bytes: usize) -> Option<WebMessageId> {
    let is_over = share.ids.len() > count || share.bytes > bytes && share.ids.len() > 1;
    share.ids.first().copied().filter(|_| is_over)
}
