//! Comms events: which agent came, went, wrote to another or took a task (spec 3, Comms).

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;
use crate::kernel::id::{AgentId, uuid_id};
use crate::kernel::record::stored;
use crate::kernel::time::Timestamp;
use crate::kernel::words::enum_words;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "comms", uses: &[] };

uuid_id! {
    /// Names one comms event. Later events have greater ids.
    CommsEventId
}

enum_words! {
    /// What happened.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum CommsKind [as_str] {
        /// An agent, or a client in its name, sent a message to another agent.
        #[default]
        AgentMessage = "agent_message",
        /// An agent was created.
        AgentSpawned = "agent_spawned",
        /// An agent was deleted.
        AgentTerminated = "agent_terminated",
        /// A task was put in the queue.
        TaskPosted = "task_posted",
        /// An agent claimed a task.
        TaskClaimed = "task_claimed",
        /// A task is done.
        TaskCompleted = "task_completed",
    }
}

/// One event.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommsEvent {
    /// When it happened, in world time.
    pub at: Timestamp,
    /// What.
    pub kind: CommsKind,
    /// Who sent, came, went, posted or claimed; `None` is a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<AgentId>,
    /// The name that it had then.
    #[serde(default)]
    pub source_name: Box<str>,
    /// Who was written to, is to do the task, or spawned or deleted the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<AgentId>,
    /// The name that it had then.
    #[serde(default)]
    pub target_name: Box<str>,
    /// The beginning of the message, or the title of the task.
    #[serde(default)]
    pub detail: Box<str>,
}

stored!(CommsEvent: b'C', CommsEventId);

impl CommsEvent {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.source_name.len() + self.target_name.len() + self.detail.len()
    }
}
