//! The task: a piece of work that waits in the task queue for whoever takes it; an entity with a
//! [`TaskId`](crate::TaskId) and this component (spec 2, Task queue).

use crate::kernel::domain::Domain;
use crate::kernel::words::enum_words;
use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::holder::Holder;
use crate::kernel::id::{AgentId, TaskId, UserId};
use crate::kernel::record::{is_default, stored};
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "task", uses: &[] };

enum_words! {
    /// Where a task is (decisions, Automation).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TaskState [ALL, as_str, parse] {
        /// It waits to be claimed.
        #[default]
        Pending = "pending",
        /// Someone claimed it.
        Running = "running",
        /// Done.
        Completed = "completed",
        /// Tried and not done; it can be retried.
        Failed = "failed",
        /// Taken out of the queue before it was done. Such a task is removed at once; only the answer says so.
        Cancelled = "cancelled",
    }
}

impl TaskState {
    /// Is it still to be done?
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

/// The state of one task.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// What is to be done, on one line; at most [`TASK_TITLE_BYTES_MAX`](crate::kernel::limit::TASK_TITLE_BYTES_MAX) bytes.
    pub title: Box<str>,
    /// More about it; at most [`TASK_TEXT_BYTES_MAX`](crate::kernel::limit::TASK_TEXT_BYTES_MAX) bytes.
    pub description: Box<str>,
    /// Who is to do it: an agent's id or name, as it was given. `None` and the empty text mean whoever comes first.
    pub assignee: Option<Box<str>>,
    /// The agent that the name meant when it was posted; nothing for an id, or where no agent had the name.
    #[serde(default, skip_serializing_if = "is_default")]
    pub assigned: Option<AgentId>,
    /// The agent that posted it; `None` when a person did.
    pub posted_by: Option<AgentId>,
    /// The agent that has claimed it; of an ended task the one that ended it. `None` while it waits.
    pub claimed_by: Option<AgentId>,
    /// When it was claimed; `None` while it waits.
    pub claimed_at: Option<Timestamp>,
    /// Number of claims.
    pub attempts: u32,
    /// What came out, or why it failed; at most [`TASK_TEXT_BYTES_MAX`](crate::kernel::limit::TASK_TEXT_BYTES_MAX) bytes.
    pub result: Option<Box<str>>,
    /// Where it is.
    pub state: TaskState,
    /// When it was posted.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was done or failed; `None` while it is open.
    pub ended_at: Option<Timestamp>,
    /// Untrusted content that turns had read that wrote its texts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint: Taint,
    /// The user with a limited role who posted it, or whose agent did: only agents of this user take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// Whose share of all tasks it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

stored!(Task: b'j', TaskId);

impl Task {
    /// Who is to do it; `None` when it is whoever comes first.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.assignee.as_deref().filter(|assignee| !assignee.is_empty())
    }

    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let optional = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        self.title.len() + self.description.len() + optional(&self.assignee) + optional(&self.result)
    }
}
