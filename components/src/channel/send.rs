//! Outgoing messages and what became of them.

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{ConversationId, SendId};
use crate::kernel::id::{AgentId, SessionId, TurnId};
use crate::kernel::record::{is_default, stored};
use crate::kernel::time::Timestamp;
use crate::kernel::words::enum_words;

enum_words! {
    /// What is known of an outgoing message. None of it says that a person has read it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SendState [ALL, as_str, parse] {
        /// It waits, or is being sent.
        #[default]
        Queued = "queued",
        /// The adapter handled it and reported no failure.
        Sent = "sent",
        /// The adapter says that the platform took it.
        Acknowledged = "acknowledged",
        /// The adapter reported a failure, or it was never sent.
        Refused = "refused",
        /// It may have been sent. It is not sent again by itself.
        Unknown = "unknown",
    }
}

enum_words! {
    /// Why something is sent.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SendCause [ALL, as_str, parse] {
        /// The answer of a turn.
        #[default]
        Answer = "answer",
        /// The answer to a command.
        Command = "command",
        /// The daemon has something to say, such as that there were too many messages.
        Notice = "notice",
        /// A tool of an agent asked for it.
        Tool = "tool",
        /// A client of the API asked for it.
        Operator = "operator",
        /// A schedule, trigger or workflow has the chat as its target.
        Target = "target",
        /// A decision is asked for.
        Approval = "approval",
        /// The adapter asked for it: a message that needs no answer.
        Relay = "relay",
    }
}

/// The state of one outgoing message.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Send {
    /// To which conversation.
    pub conversation: ConversationId,
    /// The name of the instance.
    pub instance: Box<str>,
    /// Why.
    pub cause: SendCause,
    /// The agent that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// What asked for it knows it by this: asked for again, it is not sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Uuid>,
    /// The beginning of its text.
    pub preview: Box<str>,
    /// Bytes of what its job holds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bytes: u32,
    /// What is known of it.
    pub state: SendState,
    /// Why it is so, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Box<str>>,
    /// The id that the platform gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Box<str>>,
    /// Tries so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tries: u32,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it ended; `None` while it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

stored!(Send: b'O', SendId);

impl Send {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let long = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
        self.instance.len() + self.preview.len() + long(&self.reason) + long(&self.message_id)
    }
}

/// What is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SendContent {
    /// The text; Markdown.
    pub text: String,
    /// Other content than the text: the JSON text of one externally tagged value of the sidecar protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Box<str>>,
}

/// All that a performer needs of an outgoing message: the input of its job, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SendOrder {
    /// The name of the instance.
    pub instance: Box<str>,
    /// The chat.
    pub chat: Box<str>,
    /// The thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<Box<str>>,
    /// The name of who it is for.
    pub name: Box<str>,
    /// `librefang_user` of the message that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_token: Option<Box<str>>,
    /// The id of the message that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<Box<str>>,
    /// The turn that wrote it, and its session: what was streamed of it is only confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<(SessionId, TurnId)>,
    /// What is sent.
    #[serde(flatten)]
    pub what: SendContent,
}

/// How a try of a send ended: what the performer brings when the job is done, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SendReport {
    /// What is known of it; `queued` counts as unknown.
    pub state: SendState,
    /// Why it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Box<str>>,
    /// The id that the platform gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Box<str>>,
}
