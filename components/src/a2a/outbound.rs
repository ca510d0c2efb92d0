//! Agents elsewhere that agents here call over A2A, and the tasks that were sent to them (spec 3, A2A, external agents).

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::holder::Holder;
use crate::kernel::id::{AgentId, uuid_id};
use crate::kernel::record::{is_default, stored};
use crate::kernel::time::Timestamp;
use crate::kernel::words::enum_words;

uuid_id! {
    /// Names one external agent.
    A2aAgentId
}
uuid_id! {
    /// Names one task that was sent to an external agent; also the id of its message.
    A2aSentId
}

enum_words! {
    /// How an external agent reads requests.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum A2aDialect [as_str] {
        /// JSON-RPC of version 1.0: `SendMessage`.
        V1 = "1.0",
        /// JSON-RPC of versions 0.2 and 0.3: `message/send`.
        #[default]
        V0 = "0.3",
        /// JSON-RPC of older versions: `tasks/send`, with a task id of the client.
        Tasks = "0.1",
        /// Plain JSON at `/tasks/send` below the URL of the card.
        Rest = "rest",
    }
}

/// Something that an external agent says it can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct A2aSkill {
    /// Its id.
    pub id: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// What it does.
    pub description: Box<str>,
}

/// What the card of an external agent says, as far as it is used. Others wrote it: it is untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct A2aCard {
    /// Its name.
    pub name: Box<str>,
    /// What it does.
    pub description: Box<str>,
    /// Its version.
    pub version: Box<str>,
    /// The version of the protocol, as the card writes it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub protocol: Box<str>,
    /// Where requests go.
    pub endpoint: Box<str>,
    /// How they are written.
    pub dialect: A2aDialect,
    /// The tenant that requests name, where the card has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Box<str>>,
    /// It says that it streams.
    #[serde(default, skip_serializing_if = "is_default")]
    pub streaming: bool,
    /// It says that it notifies.
    #[serde(default, skip_serializing_if = "is_default")]
    pub push_notifications: bool,
    /// What it says it can do.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skills: Vec<A2aSkill>,
    /// The digest of the whole card.
    pub digest: Box<str>,
}

impl A2aCard {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = [&self.name, &self.description, &self.version, &self.protocol, &self.endpoint, &self.digest];
        let skills = self.skills.iter().map(|skill| skill.id.len() + skill.name.len() + skill.description.len());
        let tenant = self.tenant.as_deref().map_or(0, str::len);
        texts.into_iter().map(|text| text.len()).sum::<usize>() + skills.sum::<usize>() + tenant
    }
}

/// A header that requests to one origin carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct A2aSecret {
    /// The origin, such as `https://agents.example.org`; requests to any other one do not have the header.
    pub origin: Box<str>,
    /// The name of the header.
    pub header: Box<str>,
    /// Its value, sealed by the vault for that origin.
    pub sealed: Box<str>,
}

/// An external agent that the operator discovered.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct A2aAgent {
    /// The name by which it is known here.
    pub name: Box<str>,
    /// The URL that was discovered.
    pub url: Box<str>,
    /// What its card said last.
    pub card: A2aCard,
    /// The header that requests carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<A2aSecret>,
    /// When it was discovered first.
    pub created_at: Timestamp,
    /// When its card was read last.
    pub updated_at: Timestamp,
    /// When its card was found changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<Timestamp>,
}

stored!(A2aAgent: b'X', A2aAgentId);

impl A2aAgent {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let secret = self.secret.as_ref().map_or(0, |it| it.origin.len() + it.header.len() + it.sealed.len());
        self.name.len() + self.url.len() + self.card.bytes() + secret
    }
}

enum_words! {
    /// Where a sent task is.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum A2aSentState [as_str] {
        /// It waits to be sent, or for the first answer.
        #[default]
        Submitted = "submitted",
        /// The external agent works on it.
        Working = "working",
        /// The external agent asks for more.
        InputRequired = "input-required",
        /// The external agent asks for a sign-in.
        AuthRequired = "auth-required",
        /// The external agent answered.
        Completed = "completed",
        /// It failed, or was never sent.
        Failed = "failed",
        /// The external agent does not take it.
        Rejected = "rejected",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// It may have been received, and its end is not known.
        Unknown = "unknown",
    }
}

impl A2aSentState {
    /// Is it still to end?
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Submitted | Self::Working)
    }

    /// Does the external agent wait for another message?
    #[must_use]
    pub const fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// A task that was sent to an external agent.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct A2aSent {
    /// To whom.
    pub to: A2aAgentId,
    /// The name of that agent when it was sent.
    pub to_name: Box<str>,
    /// The agent here that sent it; `None` is a client of the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<AgentId>,
    /// What a repetition is known by; empty for what is never one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub key: Box<str>,
    /// What was sent.
    pub message: Box<str>,
    /// The conversation, as the external agent knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Box<str>>,
    /// The task, as the external agent knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Box<str>>,
    /// The message continues that task.
    #[serde(default, skip_serializing_if = "is_default")]
    pub continues: bool,
    /// Where it is.
    pub state: A2aSentState,
    /// What the external agent answered. Untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<str>>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<str>>,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it ended; `None` while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Whose share of the sent tasks it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

stored!(A2aSent: b'Y', A2aSentId);

impl A2aSent {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let long = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
        let texts = self.to_name.len() + self.key.len() + self.message.len();
        texts + long(&self.context) + long(&self.remote) + long(&self.result) + long(&self.error)
    }
}
