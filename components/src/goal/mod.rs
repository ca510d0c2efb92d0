//! The goal: something to reach, in a tree of goals; an entity with a [`GoalId`](crate::GoalId) and this component
//! (spec 1, Goals).

use crate::kernel::domain::Domain;
use crate::kernel::words::enum_words;
use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::holder::Holder;
use crate::kernel::id::{AgentId, uuid_id};
use crate::kernel::record::stored;
use crate::kernel::time::Timestamp;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "goal", uses: &[] };

uuid_id! {
    /// Names one goal.
    GoalId
}

enum_words! {
    /// How far a goal is (decisions, Automation).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum GoalStatus [ALL, as_str, parse] {
        /// Nobody works on it yet.
        #[default]
        Pending = "pending",
        /// Someone works on it.
        InProgress = "in_progress",
        /// Reached.
        Completed = "completed",
        /// Given up.
        Cancelled = "cancelled",
    }
}

impl GoalStatus {
    /// Is there still something to do? Open goals stand in their agent's prompt.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }
}

/// The state of one goal.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// What is to be reached, on one line; at most [`GOAL_TITLE_BYTES_MAX`](crate::kernel::limit::GOAL_TITLE_BYTES_MAX) bytes.
    pub title: Box<str>,
    /// More about it; at most [`GOAL_DESCRIPTION_BYTES_MAX`](crate::kernel::limit::GOAL_DESCRIPTION_BYTES_MAX) bytes.
    pub description: Box<str>,
    /// The last word of whoever works on it; may be empty. At most
    /// [`GOAL_NOTE_BYTES_MAX`](crate::kernel::limit::GOAL_NOTE_BYTES_MAX) bytes.
    #[serde(default)]
    pub note: Box<str>,
    /// Whose goal; `None` when it is nobody's, or when that agent was removed.
    pub agent: Option<AgentId>,
    /// The goal that this one is a part of; it always exists.
    pub parent: Option<GoalId>,
    /// Progress.
    pub status: GoalStatus,
    /// When it should be reached.
    pub due_at: Option<Timestamp>,
    /// When it was set.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was reached; `None` unless the status is [`GoalStatus::Completed`].
    #[serde(default)]
    pub completed_at: Option<Timestamp>,
    /// Whose share of all goals it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

stored!(Goal: b'o', GoalId);

impl Goal {
    /// Bytes of its texts.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.title.len() + self.description.len() + self.note.len()
    }
}
