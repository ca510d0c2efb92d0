//! The stored form of a goal.

use serde::{Deserialize, Serialize};

use crate::goal::GoalStatus;
use crate::kernel::id::{AgentId, GoalId};
use crate::kernel::time::Timestamp;

/// One goal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalRecord {
    /// Also in the key.
    pub id: GoalId,
    /// What is to be reached.
    pub title: Box<str>,
    /// More about it.
    pub description: Box<str>,
    /// The last word of whoever works on it.
    #[serde(default)]
    pub note: Box<str>,
    /// Whose goal.
    pub agent: Option<AgentId>,
    /// The goal that this one is a part of.
    pub parent: Option<GoalId>,
    /// How far it is.
    pub status: GoalStatus,
    /// When it should be reached.
    pub due_at: Option<Timestamp>,
    /// When it was set.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was reached.
    #[serde(default)]
    pub completed_at: Option<Timestamp>,
}
