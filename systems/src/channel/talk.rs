//! Conversations come, and the ones in which nothing happened for longest go.

use agentsvc_components::channel::ConversationId;
use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::channel::message::ChatEvent;
use agentsvc_components::channel::rules::InstanceRules;
use agentsvc_components::kernel::slot::Slot;
use bevy_ecs::prelude::World;

use super::index::Conversations;
use super::receive::hash;
use super::{last, limits, post, strangers};
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, find, state};
use crate::kernel::id_generator::mint;
use crate::kernel::outbox::Emit;

/// Conversations of which one look removes one at most.
const LOOKED_AT_MAX: usize = 64;

/// Which conversation a chat and a thread are.
pub(super) struct Place<'e> {
    pub(super) instance: &'e InstanceRules,
    pub(super) chat: &'e str,
    pub(super) thread: Option<&'e str>,
}

/// The conversation of a place, made when there is none; `None` when there is no room for it.
pub(super) fn enter(world: &mut World, place: &Place<'_>, event: Option<&ChatEvent>) -> Option<ConversationId> {
    let Place { instance, chat, thread } = *place;
    if let Some(id) = world.resource::<Conversations>().find(&instance.name, chat, thread) {
        return Some(id);
    }
    make_room(world, &instance.name, false, limits::STRANGERS_MAX - 1);
    if world.resource::<Conversations>().len() >= limits::CONVERSATIONS_ALL_MAX {
        strangers::forget_oldest(world);
    }
    let all = world.resource::<Conversations>();
    let strangers = all.count(&instance.name, false);
    if strangers >= limits::STRANGERS_MAX || all.len() >= limits::CONVERSATIONS_ALL_MAX {
        return None;
    }
    let now = world.resource::<Now>().0;
    let title = event.map(|event| event.title.clone().unwrap_or_else(|| event.sender.name.clone()));
    let conversation = Conversation {
        instance: instance.name.clone(),
        chat: chat.into(),
        thread: thread.map(Into::into),
        is_group: event.is_some_and(|event| event.is_group),
        title: title.unwrap_or_else(|| chat.into()),
        created_at: now,
        last_at: now,
        ..Conversation::default()
    };
    let is_trusted = last::is_trusted(world, &conversation.instance, &conversation.chat, conversation.is_group);
    // What the daemon itself begins is no stranger's.
    let is_strangers = event.is_some() && !is_trusted && !instance.has_allow_list;
    let conversation = Conversation { is_trusted, is_strangers, ..conversation };
    let id: ConversationId = mint(world, Slot::ROOT);
    let entity = world.spawn((id, conversation)).id();
    world.mark(entity);
    Some(id)
}

/// Changes a conversation, if it is still there.
pub(super) fn update(world: &mut World, id: ConversationId, to: impl FnOnce(&mut Conversation)) {
    if let Ok(entity) = find::<Conversation>(world, id) {
        change(world, entity, to);
    }
}

/// A message that was ignored may come again: its conversation forgets that it came.
pub(crate) fn forget_message(world: &mut World, instance: &str, chat: &str, message_id: &str) {
    let Some(id) = world.resource::<Conversations>().find(instance, chat, None) else { return };
    let hash = hash(message_id);
    update(world, id, |its| its.seen.retain(|seen| *seen != hash));
}

/// A message of the conversation was let through: of a stranger, or not. A group in which somebody has
/// written whom the operator knows stays theirs.
pub(super) fn let_in(world: &mut World, id: ConversationId, instance: &str, is_by_stranger: bool) {
    let Some(its) = state::<Conversation>(world, id) else { return };
    let is_new = !its.is_known;
    let is_strangers = is_by_stranger && (its.is_strangers || !its.is_group);
    strangers::set(world, id, is_strangers);
    if is_new {
        update(world, id, |its| its.is_known = true);
        make_room(world, instance, true, limits::CONVERSATIONS_MAX);
    }
}

/// The oldest conversations go while there are more than `most`, as far as nothing of them is open.
pub(super) fn make_room(world: &mut World, instance: &str, is_known: bool, most: usize) {
    let over = world.resource::<Conversations>().count(instance, is_known).saturating_sub(most);
    if over == 0 {
        return;
    }
    let oldest: Vec<ConversationId> =
        world.resource::<Conversations>().oldest(instance, is_known).take(LOOKED_AT_MAX.max(over)).collect();
    let mut left = over;
    for id in oldest {
        if left > 0 && post::forget(world, id) {
            left -= 1;
        }
    }
}
