//! The stored form of a task.

use serde::{Deserialize, Serialize};

use crate::kernel::id::{AgentId, TaskId};
use crate::kernel::record::is_default;
use crate::kernel::time::Timestamp;
use crate::taint::Taint;
use crate::task::TaskState;

/// One task of the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Also in the key.
    pub id: TaskId,
    /// What is to be done.
    pub title: Box<str>,
    /// More about it.
    pub description: Box<str>,
    /// Who is to do it, as it was given.
    pub assignee: Option<Box<str>>,
    /// The agent that posted it.
    pub posted_by: Option<AgentId>,
    /// The agent that has claimed it, or ended it.
    pub claimed_by: Option<AgentId>,
    /// When it was claimed.
    pub claimed_at: Option<Timestamp>,
    /// How often it was claimed.
    pub attempts: u32,
    /// What came out, or why it failed.
    pub result: Option<Box<str>>,
    /// Where it is.
    pub state: TaskState,
    /// When it was posted.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was done or failed.
    pub ended_at: Option<Timestamp>,
    /// Untrusted content that turns had read that wrote its texts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint: Taint,
}
