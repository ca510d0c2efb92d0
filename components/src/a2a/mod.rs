//! Tasks that clients of the A2A protocol send to agents of this daemon, and those that agents here send to others (spec 3,
//! A2A).

pub mod outbound;

use std::collections::BTreeMap;

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;
use crate::kernel::id::{AgentId, SessionId, TurnId, uuid_id};
use crate::kernel::money::Micros;
use crate::kernel::record::{is_default, stored};
use crate::kernel::time::Timestamp;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "a2a", uses: &[] };

uuid_id! {
    /// Names one task that a client sent; a random UUID, so that nobody guesses it.
    A2aTaskId
}
uuid_id! {
    /// Names what tasks have cost on one UTC day; the UUID is the number of the day.
    A2aDayId
}

/// Where a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum A2aState {
    /// Its turn waits or runs.
    #[default]
    Working,
    /// The agent answered.
    Completed,
    /// The turn ended without an answer.
    Failed,
    /// The client, or a stop, ended it.
    Cancelled,
}

impl A2aState {
    /// Is it still to end?
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Working)
    }
}

/// The state of one task.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct A2aTask {
    /// Who answers.
    pub agent: AgentId,
    /// The name of that agent when the task came.
    pub agent_name: Box<str>,
    /// The session that holds the conversation.
    pub session: SessionId,
    /// The turn that answers it.
    pub turn: TurnId,
    /// Who sent it, as far as that is known: see [`is_stranger`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub client: Box<str>,
    /// The conversation, as the client knows it.
    pub context: Box<str>,
    /// The id that the client gave it; `None` when the daemon's is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<Box<str>>,
    /// What a repetition of the same task is known by.
    pub key: Box<str>,
    /// What the task is a digest of, so that another one under the same key is told apart.
    pub digest: Box<str>,
    /// The id of the client's message.
    pub message_id: Box<str>,
    /// What the client said.
    pub message: Box<str>,
    /// Where it is.
    pub state: A2aState,
    /// The answer, or why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<str>>,
    /// When it came.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it ended; `None` while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Who is told of its end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub push: Vec<PushTarget>,
}

/// Who is told of a task's end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushTarget {
    /// Names it within its task.
    pub id: Box<str>,
    /// Where notifications are posted.
    pub url: Box<str>,
    /// The token that the receiver knows them by, sealed by the vault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Box<str>>,
    /// The `Authorization` header, sealed by the vault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization: Option<Box<str>>,
    /// The scheme of that header, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<Box<str>>,
    /// The receiver reads version 1.0 of the protocol; else 0.3.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_v1: bool,
}

impl PushTarget {
    fn bytes(&self) -> usize {
        let long = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
        self.id.len() + self.url.len() + long(&self.token) + long(&self.authorization) + long(&self.scheme)
    }
}

stored!(A2aTask: b'A', A2aTaskId);

/// Does this name an address, and not a client that showed a key?
#[must_use]
pub fn is_stranger(client: &str) -> bool {
    client.is_empty() || client.starts_with(STRANGER)
}

/// How the names of clients begin that are addresses.
pub const STRANGER: char = '@';

impl A2aTask {
    /// Was it sent without a key?
    #[must_use]
    pub fn is_of_stranger(&self) -> bool {
        is_stranger(&self.client)
    }

    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let long = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
        let names = [&self.agent_name, &self.client, &self.context];
        let texts = names.into_iter().chain([&self.key, &self.digest, &self.message_id, &self.message]);
        let texts: usize = texts.map(|text| text.len()).sum();
        texts + long(&self.client_id) + long(&self.result) + self.push.iter().map(PushTarget::bytes).sum::<usize>()
    }
}

/// What the tasks of one UTC day have cost. There is one at most: that of the newest day.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct A2aDay {
    /// What the ended turns of tasks have cost that came without a key, and those that these turns began in other agents.
    pub cost: Micros,
    /// The same of each client that showed a key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub known: BTreeMap<Box<str>, Micros>,
}

stored!(A2aDay: b'D', A2aDayId);
