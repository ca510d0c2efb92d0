//! What decides about the messages of one instance.

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use super::ChannelId;
use crate::kernel::record::{is_default, stored};
use crate::kernel::words::{Word, Words, enum_words};
use crate::manifest::channel::ChannelOverrides;

enum_words! {
    /// What a user of the configuration may do in chats; a later one may all that those before it may.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ChatRole [ALL, as_str, parse] {
        /// Reads: starts no turn.
        #[default]
        Viewer = "viewer",
        /// Chats, and gives commands of a chat.
        User = "user",
        /// Decides approvals, and gives commands that change what belongs to others.
        Admin = "admin",
        /// The same.
        Owner = "owner",
    }
}

impl Word for ChatRole {
    const WORDS: Words<Self> = &[
        ("owner", Self::Owner),
        ("admin", Self::Admin),
        ("user", Self::User),
        ("viewer", Self::Viewer),
        ("guest", Self::Viewer),
    ];
}

/// One of `[[users]]`, as far as chats know it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatUser {
    /// The name.
    pub name: Box<str>,
    /// What they may do.
    pub role: ChatRole,
    /// Who they are in chats: the name of an instance or a channel type, and the id of the sender there.
    pub channel_bindings: Vec<(Box<str>, Box<str>)>,
}

/// One of `[[bindings]]`: messages that match all that it names go to the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatBinding {
    /// The name or the id of the agent.
    pub agent: Box<str>,
    /// The instance, or the channel type; weight 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Box<str>>,
    /// The account of the bot; weight 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<Box<str>>,
    /// The chat, or the sender; weight 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_id: Option<Box<str>>,
    /// The server that the chat is part of; weight 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guild_id: Option<Box<str>>,
    /// Roles of the sender on the platform, of which one is enough; weight 2.
    #[serde(skip_serializing_if = "is_default")]
    pub roles: Vec<Box<str>>,
}

impl ChatBinding {
    /// Its weight: of two that match, the heavier one counts.
    #[must_use]
    pub fn weight(&self) -> u32 {
        let parts = [
            (self.peer_id.is_some(), 8),
            (self.guild_id.is_some(), 4),
            (!self.roles.is_empty(), 2),
            (self.account_id.is_some(), 2),
            (self.channel.is_some(), 1),
        ];
        parts.iter().filter(|(is_named, _)| *is_named).map(|(_, weight)| weight).sum()
    }
}

/// Limits of the answers to chats: `[auto_reply]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoReply {
    /// Answers that are being written at once, in all channels together. More: their messages wait.
    pub max_concurrent: u32,
    /// Seconds after which a turn is stopped.
    pub timeout_secs: u32,
    /// Messages that contain one of these, in any case of letters, get no answer.
    pub suppress_patterns: Vec<Box<str>>,
}

impl AutoReply {
    /// Does a message get no answer?
    #[must_use]
    pub fn suppresses(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.suppress_patterns.iter().any(|pattern| text.contains(&pattern.to_lowercase()))
    }
}

/// The rules of one instance, as the configuration has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstanceRules {
    /// Its name: all keys of the world use it, never the channel type alone.
    pub name: Box<str>,
    /// The kind of channel, such as `telegram`.
    pub channel_type: Box<str>,
    /// The name or the id of the agent that answers where nothing else says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Box<str>>,
    /// The agents that chats may choose, by name or id; empty: only [`agent`](Self::agent) and those of bindings.
    #[serde(skip_serializing_if = "is_default")]
    pub available_agents: Vec<Box<str>>,
    /// How it answers, as far as the agent's manifest does not say otherwise.
    pub overrides: ChannelOverrides,
    /// The adapter lets only those through that an allow list of its own names.
    #[serde(skip_serializing_if = "is_default")]
    pub has_allow_list: bool,
    /// Milliseconds from the first message of a sender on in which further ones are joined to it; 0 joins none.
    #[serde(skip_serializing_if = "is_default")]
    pub coalesce_window_ms: u32,
    /// No text of an error is sent: its chats are public.
    #[serde(skip_serializing_if = "is_default")]
    pub suppress_errors: bool,
    /// The daemon keeps what is said in its chats itself, and sending is keeping: there is no adapter.
    #[serde(skip_serializing_if = "is_default")]
    pub keeps_messages: bool,
    /// The chat of messages that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_conversation: Option<Box<str>>,
    /// Chats that tools of agents may send to beside the one that they answer, as globs.
    #[serde(skip_serializing_if = "is_default")]
    pub allow_send_to: Vec<Box<str>>,
    /// Senders that are told of approvals, and may decide them.
    #[serde(skip_serializing_if = "is_default")]
    pub notification_recipients: Vec<Box<str>>,
    /// The users of the configuration. Where there are any, others are strangers.
    #[serde(skip_serializing_if = "is_default")]
    pub users: Vec<ChatUser>,
    /// What people with roles of the platform may do in paired chats, where no user of the configuration is the sender.
    #[serde(skip_serializing_if = "is_default")]
    pub role_mapping: Vec<(Box<str>, ChatRole)>,
    /// Bindings of the configuration; those of other channels match nothing here.
    #[serde(skip_serializing_if = "is_default")]
    pub bindings: Vec<ChatBinding>,
    /// Chats that several agents answer: the chat, and the agents by name or id.
    #[serde(skip_serializing_if = "is_default")]
    pub broadcast: Vec<(Box<str>, Vec<Box<str>>)>,
    /// Limits of its answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_reply: Option<AutoReply>,
}

impl InstanceRules {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let list = |words: &[Box<str>]| words.iter().map(|word| word.len()).sum::<usize>();
        let long = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
        let pairs = |pairs: &[(Box<str>, Box<str>)]| pairs.iter().map(|(a, b)| a.len() + b.len()).sum::<usize>();
        let users: usize = self.users.iter().map(|user| user.name.len() + pairs(&user.channel_bindings)).sum();
        let binding = |it: &ChatBinding| {
            let optional = [&it.channel, &it.account_id, &it.peer_id, &it.guild_id];
            it.agent.len() + optional.into_iter().map(long).sum::<usize>() + list(&it.roles)
        };
        let broadcast: usize = self.broadcast.iter().map(|(chat, agents)| chat.len() + list(agents)).sum();
        let lists = [&self.available_agents, &self.allow_send_to, &self.notification_recipients];
        self.name.len()
            + self.channel_type.len()
            + long(&self.agent)
            + long(&self.default_conversation)
            + lists.into_iter().map(|words| list(words)).sum::<usize>()
            + self.overrides.bytes()
            + users
            + self.role_mapping.iter().map(|(role, _)| role.len()).sum::<usize>()
            + self.bindings.iter().map(binding).sum::<usize>()
            + broadcast
            + self.auto_reply.iter().map(|it| list(&it.suppress_patterns)).sum::<usize>()
    }
}

/// One instance of a channel.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelInstance {
    /// Its rules.
    pub rules: InstanceRules,
    /// The minute in which messages are counted for the rate of the instance, and how many there were.
    #[serde(default, skip_serializing_if = "is_default")]
    pub minute: (i64, u32),
}

stored!(ChannelInstance: b'K', ChannelId);

impl ChannelInstance {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rules.bytes()
    }
}
