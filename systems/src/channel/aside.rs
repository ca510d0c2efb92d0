//! A question beside the conversation (`/btw`): it is answered in the chat, in a session of its own.

use agentsvc_components::AgentId;
use agentsvc_components::channel::ConversationId;
use agentsvc_components::channel::message::{ChatEvent, ChatMessage, ChatMessageState};
use agentsvc_components::channel::rules::InstanceRules;
use bevy_ecs::prelude::World;

use super::receive::{Received, open, store};
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, find};

/// Begins the turn of such a question. It waits for no further messages.
pub(super) fn aside(
    world: &mut World,
    of: &InstanceRules,
    id: ConversationId,
    event: &ChatEvent,
    agent: AgentId,
) -> Received {
    let due = world.resource::<Now>().0;
    let message = store(world, of, id, event, Some(agent), ChatMessageState::Waiting { due });
    if let Ok(entity) = find::<ChatMessage>(world, message) {
        change(world, entity, |message: &mut ChatMessage| message.is_aside = true);
    }
    open(world, id, message)
}
