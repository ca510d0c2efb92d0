//! A conversation: a chat of an instance, with its thread where threads are conversations of their own.

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use super::ConversationId;
use crate::kernel::id::{AgentId, SessionId};
use crate::kernel::record::{is_default, stored};
use crate::kernel::time::Timestamp;

/// The session of a conversation with one agent. No other conversation has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatSession {
    /// The agent.
    pub agent: AgentId,
    /// Its session.
    pub session: SessionId,
}

/// Something that a chat is told once in a while, and not again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// There were too many messages.
    Rate,
    /// The chat is not paired.
    Pairing,
    /// No agent is set for the channel.
    NoAgent,
    /// The sender may not chat, or give this command.
    Denied,
    /// The agent that is asked for is not among those of the channel.
    UnknownAgent,
}

/// Messages of one sender in a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderRate {
    /// A hash of the sender's id.
    pub sender: u64,
    /// The minute, counted from 1970.
    pub minute: i64,
    /// How many there were.
    pub count: u32,
}

/// The state of one conversation.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conversation {
    /// The name of the instance.
    pub instance: Box<str>,
    /// The chat, as the platform names it.
    pub chat: Box<str>,
    /// The thread, where threads are conversations of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<Box<str>>,
    /// Is it a group?
    #[serde(skip_serializing_if = "is_default")]
    pub is_group: bool,
    /// Its name, or that of the last sender, for people.
    pub title: Box<str>,
    /// When it was first heard of.
    pub created_at: Timestamp,
    /// When something last happened in it.
    pub last_at: Timestamp,
    /// A message of it was let through once: it is no stranger's.
    #[serde(skip_serializing_if = "is_default")]
    pub is_known: bool,
    /// It was paired, or with a user of the configuration, when something last happened in it: where reports may go. Whether it
    /// still is so is asked again.
    #[serde(skip_serializing_if = "is_default")]
    pub is_trusted: bool,
    /// Only strangers wrote in it: nobody whom the operator knows. Its sessions are of the strangers' share of the store, and go
    /// with it.
    #[serde(skip_serializing_if = "is_default")]
    pub is_strangers: bool,
    /// The agent that the chat chose (`/agent`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The agent that answered last, and until when it keeps the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<(AgentId, Timestamp)>,
    /// Messages in a row that fit another agent better than the holder.
    #[serde(skip_serializing_if = "is_default")]
    pub diverging: u32,
    /// Its messages ask for extended thinking (`/think`).
    #[serde(skip_serializing_if = "is_default")]
    pub thinking: bool,
    /// Its sessions, the one that was used last at the end.
    #[serde(skip_serializing_if = "is_default")]
    pub sessions: Vec<ChatSession>,
    /// Hashes of the ids of the newest messages, the newest last.
    #[serde(skip_serializing_if = "is_default")]
    pub seen: Vec<u64>,
    /// What it was told, and until when it is not told again.
    #[serde(skip_serializing_if = "is_default")]
    pub told: Vec<(Notice, Timestamp)>,
    /// How many messages its senders wrote in their newest minutes.
    #[serde(skip_serializing_if = "is_default")]
    pub rates: Vec<SenderRate>,
    /// Answers to other bots since the last message of a person.
    #[serde(skip_serializing_if = "is_default")]
    pub bot_replies: u32,
    /// The minute in which turns are counted, and how many there were: the bound of a loop.
    #[serde(skip_serializing_if = "is_default")]
    pub turns: (i64, u32),
    /// Wrong codes of pairing, and when they are forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong_codes: Option<(u8, Timestamp)>,
    /// The id of the newest message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message_id: Option<Box<str>>,
}

stored!(Conversation: b'J', ConversationId);

impl Conversation {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let long = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
        self.instance.len() + self.chat.len() + self.title.len() + long(&self.thread) + long(&self.last_message_id)
    }

    /// Its session with an agent.
    #[must_use]
    pub fn session_with(&self, agent: AgentId) -> Option<SessionId> {
        self.sessions.iter().find(|its| its.agent == agent).map(|its| its.session)
    }
}
