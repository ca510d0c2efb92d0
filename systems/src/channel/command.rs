//! Commands of chats: carried out outside, and answered exactly once.

use agentsvc_components::Refusal;
use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::channel::message::{ChatMessage, ChatMessageState};
use agentsvc_components::channel::send::{SendCause, SendContent};
use agentsvc_components::channel::{ChatMessageId, SendId};
use agentsvc_components::kernel::limit;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use super::index::Messages;
use super::post::{Outgoing, post_or_refuse};
use super::receive::PendingCommand;
use super::send::check_content;
use super::{begin, rules};
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::state;

/// A command of a chat was carried out: its message is answered, in one step. 404 when it was completed before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompleteCommand {
    /// The message.
    pub message: ChatMessageId,
    /// The answer; `None` sends none.
    pub reply: Option<SendContent>,
}

command! {
    write "complete_chat_command" CompleteCommand => Option<SendId>, Root, |it, world|
        Answer::stored(complete(world, it))
}

/// The commands of chats that are not completed: after a start they are carried out again. The oldest first, at most
/// [`PAGE_ITEMS_MAX`](agentsvc_components::kernel::limit::PAGE_ITEMS_MAX).
#[derive(Clone, Debug, Default)]
pub struct PendingCommands {
    /// Only those of this instance.
    pub instance: Option<Box<str>>,
}

command! {
    read "pending_chat_commands" PendingCommands => Vec<PendingCommand>, Root, |it, world|
        Answer::read(pending(world, it.instance.as_deref()))
}

fn complete(
    world: &mut World,
    CompleteCommand { message: id, reply }: CompleteCommand,
) -> Result<Option<SendId>, Refusal> {
    let message =
        state::<ChatMessage>(world, id).filter(|it| matches!(it.state, ChatMessageState::Command(_))).cloned();
    let Some(message) = message else { return Err(Refusal::not_found("command of a chat", id)) };
    if let Some(what) = &reply {
        check_content(what)?;
    }
    let send = reply.and_then(|what| {
        let out = Outgoing { agent: message.agent, what, ..Outgoing::to(&message, SendCause::Command, "") };
        post_or_refuse(world, message.conversation, out)
    });
    begin::remove(world, id);
    Ok(send)
}

fn pending(world: &World, instance: Option<&str>) -> Vec<PendingCommand> {
    let all = world.resource::<Messages>().commands().filter_map(|id| view(world, id));
    all.filter(|it| instance.is_none_or(|name| *it.instance == *name)).take(limit::PAGE_ITEMS_MAX).collect()
}

/// A command that is to be carried out.
pub(super) fn view(world: &World, id: ChatMessageId) -> Option<PendingCommand> {
    let message = state::<ChatMessage>(world, id)?;
    let ChatMessageState::Command(command) = &message.state else { return None };
    let conversation = state::<Conversation>(world, message.conversation)?;
    let of = rules::of(world, &conversation.instance).unwrap_or_default();
    Some(PendingCommand {
        message: id,
        conversation: message.conversation,
        instance: conversation.instance.clone(),
        chat: conversation.chat.clone(),
        name: command.name.clone(),
        args: command.args.clone(),
        edits: command.edits.clone(),
        agent: message.agent,
        session: message.agent.and_then(|agent| conversation.session_with(agent)),
        role: rules::role(world, &of, &conversation.chat, &message.sender),
        thinking: conversation.thinking,
        may_approve: rules::may_approve(world, &of, &conversation.chat, &message.sender),
        sender: message.sender.id.clone(),
        message_id: message.message_id.clone(),
    })
}
