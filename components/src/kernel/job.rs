//! The job: durable work for the outside that outlives a restart; an entity with a [`JobId`] and this component.

use std::sync::Arc;

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::attempt::Attempt;
use super::effect::Effect;
use super::holder::Holder;
use super::id::{AgentId, JobId};
use super::outcome::Outcome;
use super::record::stored;
use super::time::Timestamp;

/// Where a job is. It ends, and its entity with it, when it is done or has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It waits until it is due, or for a place in the lane of its kind.
    #[default]
    Waiting,
    /// A try of it is out.
    Out,
}

/// One job. The component is its record.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The name of its kind.
    pub kind: Box<str>,
    /// What it is for. Where the kind asks for order, jobs of one subject run one after the other.
    pub subject: Uuid,
    /// Whose it is; it ends with that agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<AgentId>,
    /// Whose share of the jobs of its kind it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// Tries that were begun. The newest one fences outcomes.
    pub tries: u32,
    /// When it was added.
    pub created_at: Timestamp,
    /// When its next try may begin.
    pub due: Timestamp,
    /// When it fails if no try succeeded before.
    pub deadline: Timestamp,
    /// Where it is.
    pub state: JobState,
    /// What its performer needs, as a text.
    pub input: Arc<str>,
}

stored!(Job: b'q', JobId);

impl Job {
    /// Its newest try.
    #[must_use]
    pub const fn attempt(&self, id: JobId) -> Attempt {
        Attempt { job: id, number: self.tries }
    }
}

/// Try a job; comes back as [`JobOutcome`].
#[derive(Clone, Debug)]
pub struct RunJob {
    /// Fences the outcome.
    pub attempt: Attempt,
    /// The name of its kind.
    pub kind: &'static str,
    /// What it is for.
    pub subject: Uuid,
    /// Whose it is.
    pub owner: Option<AgentId>,
    /// When the job was added.
    pub created_at: Timestamp,
    /// Milliseconds that the try may take.
    pub timeout_ms: u32,
    /// What its performer needs.
    pub input: Arc<str>,
}

impl Effect for RunJob {}

/// How a try of a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TryEnd {
    /// It succeeded; what it brings.
    Done(String),
    /// It failed, and another try may succeed.
    Retry {
        /// Not before so many milliseconds have passed, when the other side said so.
        after_ms: Option<u32>,
        /// Why, for people.
        reason: String,
    },
    /// It failed for good; why, for people.
    Failed(String),
    /// Nobody knows whether it took effect; why, for people.
    Lost(String),
}

/// A try of a job ended. Dropped when its attempt is stale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOutcome(pub Attempt, pub TryEnd);

impl Outcome for JobOutcome {
    const NAME: &'static str = "Job";
}
