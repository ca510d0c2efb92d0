//! Messages of chats: as an adapter brings them, and those that are not answered yet.

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use super::{ChatMessageId, ConversationId};
use crate::kernel::id::{AgentId, SessionId, TurnId};
use crate::kernel::record::{is_default, stored};
use crate::kernel::taint::InjectionFound;
use crate::kernel::time::Timestamp;
use crate::session::message::Block;

/// Who wrote a message. All of it is the adapter's word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sender {
    /// The id of the person (`metadata.sender_user_id`, else `user_id`).
    pub id: Box<str>,
    /// The name, for people.
    pub name: Box<str>,
    /// `id` names a person. Not so where the adapter only names the room: then the sender is no user of the configuration.
    pub is_person: bool,
    /// The platform says that it is a bot.
    #[serde(skip_serializing_if = "is_default")]
    pub is_bot: bool,
    /// Roles of the sender on the platform.
    #[serde(skip_serializing_if = "is_default")]
    pub roles: Vec<Box<str>>,
}

/// A command of a chat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatCommand {
    /// Its name, without the slash and in small letters.
    pub name: Box<str>,
    /// What follows it.
    pub args: Box<str>,
    /// The message whose button it is, which its answer replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<Box<str>>,
}

/// A message as an adapter brings it, in one form for all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatEvent {
    /// The chat.
    pub chat: Box<str>,
    /// The thread of the chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<Box<str>>,
    /// Is it a group?
    #[serde(skip_serializing_if = "is_default")]
    pub is_group: bool,
    /// The name of the chat, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Box<str>>,
    /// Who wrote it.
    pub sender: Sender,
    /// What it says; other content as a text.
    pub text: Box<str>,
    /// The text as the agent reads it, where the scanner changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shielded: Option<Box<str>>,
    /// What the scanner found in it.
    #[serde(skip_serializing_if = "is_default")]
    pub found: Vec<InjectionFound>,
    /// What comes with it, of uploads.
    #[serde(skip_serializing_if = "is_default")]
    pub blocks: Vec<Block>,
    /// It brings files that are fetched once it is taken: what the agent reads in their place where they do not come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Box<str>>,
    /// The id of the message on its platform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Box<str>>,
    /// `librefang_user`: goes back byte for byte with the answer to this message. It names no one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_token: Option<Box<str>>,
    /// Names that it mentions.
    #[serde(skip_serializing_if = "is_default")]
    pub mentions: Vec<Box<str>>,
    /// It mentions the bot.
    #[serde(skip_serializing_if = "is_default")]
    pub was_mentioned: bool,
    /// The command that it is, where it is one that there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<ChatCommand>,
    /// The account of the bot; the name of the instance where the adapter names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<Box<str>>,
    /// The server that the chat is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guild_id: Option<Box<str>>,
    /// The agent that the thread, or the message itself, asks for (`thread_route_agent`, `target_agent`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_agent: Option<Box<str>>,
    /// It asks for no answer, and goes to this chat (`__deliver_only__`, `__deliver_target__`); empty is the chat that the
    /// instance has for messages without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliver_to: Option<Box<str>>,
}

impl ChatEvent {
    /// Takes what is asked with `/btw`, beside the conversation, for its text. Is it that?
    pub fn take_aside(&mut self) -> bool {
        let asked = self.command.as_ref().filter(|command| &*command.name == "btw" && !command.args.is_empty());
        let Some(asked) = asked.map(|command| command.args.clone()) else { return false };
        self.text = asked;
        self.command = None;
        true
    }
}

/// Where a message is that is not answered yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatMessageState {
    /// It waits for further ones of its sender, or for room.
    Waiting {
        /// Until when.
        due: Timestamp,
    },
    /// It is a command that is carried out outside.
    Command(ChatCommand),
    /// A model is asked whether it deserves an answer (`reply_precheck_model`).
    Checking {
        /// The turn that asks.
        turn: TurnId,
        /// Until when; `None` once that is over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    /// Its turn is open.
    Answering {
        /// Which agent answers.
        agent: AgentId,
        /// In which session.
        session: SessionId,
        /// The turn.
        turn: TurnId,
        /// When the turn is stopped, where `[auto_reply]` says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
}

/// A message of a chat that is not answered yet; messages that were joined are one.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Of which conversation.
    pub conversation: ConversationId,
    /// The name of its instance.
    #[serde(default, skip_serializing_if = "is_default")]
    pub instance: Box<str>,
    /// Who wrote it.
    pub sender: Sender,
    /// What it says.
    pub text: Box<str>,
    /// What the scanner found in it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub found: Vec<InjectionFound>,
    /// What comes with it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub blocks: Vec<Block>,
    /// Its files are being fetched: what the agent reads in their place where they do not come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Box<str>>,
    /// The thread that the answer goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Box<str>>,
    /// The id of the message on its platform; of joined messages that of the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Box<str>>,
    /// Goes back with the answer; of joined messages that of the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_token: Option<Box<str>>,
    /// The agent that answers, as it was found when the message came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// When it came; of joined messages when the first came.
    pub at: Timestamp,
    /// It, or one that was joined to it, is meant for the bot.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_addressed: bool,
    /// It is asked beside the conversation: its turn has a session of its own, which the conversation does not remember.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_aside: bool,
    /// A model said that it deserves an answer, or gave none: it is not asked again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_checked: bool,
    /// How many messages were joined.
    pub joined: u32,
    /// Where it is.
    pub state: ChatMessageState,
}

stored!(ChatMessage: b'N', ChatMessageId);

impl ChatMessage {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let long = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
        let command = match &self.state {
            ChatMessageState::Command(command) => command.name.len() + command.args.len() + long(&command.edits),
            ChatMessageState::Waiting { .. }
            | ChatMessageState::Checking { .. }
            | ChatMessageState::Answering { .. } => 0,
        };
        let block = |block: &Block| if let Block::Text { text } = block { text.len() } else { 64 };
        self.instance.len()
            + self.sender.id.len()
            + self.sender.name.len()
            + self.text.len()
            + long(&self.files)
            + long(&self.thread)
            + long(&self.message_id)
            + long(&self.reply_token)
            + self.blocks.iter().map(block).sum::<usize>()
            + command
    }
}
