//! Durable identities. An entity's id is minted once, stored, and never minted again.

use std::fmt;
use std::str::FromStr;

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An id that is a UUID.
pub trait DurableId: Component + Copy + Ord + fmt::Debug + fmt::Display + FromStr {
    /// The UUID.
    fn to_uuid(self) -> Uuid;
    /// The id of this UUID.
    fn from_uuid(id: Uuid) -> Self;
}

/// Declares an id that is a UUID. A domain declares those of its entities beside their components.
macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            bevy_ecs::prelude::Component, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize,
        )]
        #[component(immutable)]
        #[serde(transparent)]
        pub struct $name(pub uuid::Uuid);

        impl $crate::kernel::id::DurableId for $name {
            fn to_uuid(self) -> uuid::Uuid {
                self.0
            }

            fn from_uuid(id: uuid::Uuid) -> Self {
                Self(id)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                uuid::Uuid::try_parse(text).map(Self)
            }
        }
    };
}

pub(crate) use uuid_id;

uuid_id! {
    /// Names one user.
    UserId
}
uuid_id! {
    /// Names one key of the API.
    KeyId
}
uuid_id! {
    /// Names one agent for ever; a UUID v7 minted when the agent is spawned.
    AgentId
}
uuid_id! {
    /// Names one session. Usually a UUID v7 of ours; a client may bring its own
    /// (spec 1, Message routing rules, rule 3).
    SessionId
}
uuid_id! {
    /// Names one turn: a message's way through the model to its answer.
    TurnId
}

/// Who has a share of what there is for all agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sharer {
    /// The agents of a user with a limited role.
    User(UserId),
    /// The agent that a client created, and all that descend from it.
    Family(AgentId),
}

impl From<TurnId> for JobId {
    fn from(turn: TurnId) -> Self {
        Self(turn.0)
    }
}

impl From<CompactionId> for JobId {
    fn from(compaction: CompactionId) -> Self {
        Self(compaction.0)
    }
}

uuid_id! {
    /// Names one job: work for the outside that attempts belong to. What has an id of its own is named by that.
    JobId
}
uuid_id! {
    /// Names one compaction: the job that replaces the older messages of a session by a summary.
    CompactionId
}
uuid_id! {
    /// Names one uploaded file; a random UUID, so that nobody guesses it.
    FileId
}

uuid_id! {
    /// Names one trigger: what makes an agent act when something happens.
    TriggerId
}
uuid_id! {
    /// Names one schedule or cron job: what makes an agent act at its time.
    ScheduleId
}
uuid_id! {
    /// Names one workflow definition.
    WorkflowId
}
uuid_id! {
    /// Names one run of a workflow.
    RunId
}
uuid_id! {
    /// Names one task of the queue.
    TaskId
}
uuid_id! {
    /// Names one approval: an action that waits for a person.
    ApprovalId
}

/// Names one append-only run of messages in the content store.
///
/// A session points at its log. Clearing the history gives the session a new log and hands the old one
/// to the sweeper, so that clearing costs one small write however long the history was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogId(pub u64);
