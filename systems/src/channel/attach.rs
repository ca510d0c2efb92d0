//! The files of a message that was taken: fetched outside, then attached. A message is stored before they are fetched, so that
//! one that is not taken costs nothing, and a kill loses no text.

use agentsvc_components::Refusal;
use agentsvc_components::channel::ChatMessageId;
use agentsvc_components::channel::message::{ChatMessage, ChatMessageState};
use agentsvc_components::kernel::taint::InjectionFound;
use agentsvc_components::session::message::Block;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use super::index::Messages;
use super::limits;
use super::receive::{Received, joined, open};
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{change, find, state};

/// The files of a message are there, and its turn begins. 404 when it did not wait for them any more: then they belong to
/// nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttachFiles {
    /// The message.
    pub message: ChatMessageId,
    /// The files that came.
    pub blocks: Vec<Block>,
    /// What the scanner found in their texts.
    #[serde(default)]
    pub found: Vec<InjectionFound>,
    /// What the agent reads in place of those that did not.
    pub missing: Option<Box<str>>,
}

command! {
    write "attach_chat_files" AttachFiles => Received, Root, |it, world| Answer::stored(attach(world, it))
}

fn attach(world: &mut World, it: AttachFiles) -> Result<Received, Refusal> {
    let AttachFiles { message: id, blocks, found, missing } = it;
    let waits =
        |message: &&ChatMessage| message.files.is_some() && matches!(message.state, ChatMessageState::Waiting { .. });
    let Some(first) = state::<ChatMessage>(world, id).filter(waits).cloned() else {
        return Err(Refusal::not_found("message of a chat that waits for files", id));
    };
    if blocks.len().max(found.len()) > limits::CHAT_BLOCKS_MAX {
        return Err(Refusal::bad_field("blocks", format!("more than {} attachments", limits::CHAT_BLOCKS_MAX)));
    }
    // Other agents that answer the same message.
    let is_copy = |other: &ChatMessage| {
        other.at == first.at && other.sender == first.sender && other.message_id == first.message_id
    };
    let all = world.resource::<Messages>().of(first.conversation);
    let all: Vec<ChatMessageId> =
        all.filter(|other| state::<ChatMessage>(world, *other).filter(waits).is_some_and(is_copy)).collect();
    for one in &all {
        let entity = find::<ChatMessage>(world, *one)?;
        change(world, entity, |message: &mut ChatMessage| {
            let text = joined(&message.text, missing.as_deref());
            message.text = text[..text.floor_char_boundary(limits::CHAT_TEXT_BYTES_MAX)].into();
            message.blocks.extend(blocks.iter().cloned());
            message.found.extend(found.iter().cloned());
            message.files = None;
        });
    }
    for other in all.into_iter().filter(|other| *other != id) {
        open(world, first.conversation, other);
    }
    Ok(open(world, first.conversation, id))
}
