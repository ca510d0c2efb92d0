//! Rehearsals as this room sees them: worlds that are forked and run ahead in virtual time (issue 7, Fork and rehearsal;
//! docs/rehearsal.md has every key). Implemented where the store is known.

use std::collections::BTreeMap;
use std::sync::Arc;

use agentsvc_components::{AgentId, Timestamp};
use agentsvc_systems::Settings;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

mod report;

pub use report::{
    AgentLine, ApprovalLine, Approvals, BudgetLine, BusiestMinute, Cost, Overlaps, Progress, RefusedEvent, Report,
    SkipLine, SourceLine, Status, Timeline, TimelineBucket, Tokens, Told, Turns,
};

/// What is to be rehearsed; checked as far as that needs no disk.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The world to begin with: `None` is the newest committed step, else a snapshot.
    pub from: Option<Uuid>,
    /// When it ends.
    pub end: PlanEnd,
    /// Who answers for the models.
    pub model: Model,
    /// All the randomness of the rehearsal.
    pub seed: u64,
    /// What happens on the way, as it was given.
    pub events: Vec<Injected>,
    /// The settings of the live world.
    pub settings: Box<Settings>,
}

/// When a rehearsal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanEnd {
    /// So many milliseconds behind its beginning.
    After(i64),
    /// At this moment.
    At(Timestamp),
}

agentsvc_components::enum_words! {
    /// Who answers for the models.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Model [as_str] {
        /// A fixed script.
        #[default]
        Builtin = "builtin",
        /// What the agents' turns were like so far.
        Recorded = "recorded",
    }
}

/// An event to inject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injected {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: InjectedKind,
}

/// Events to inject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InjectedKind {
    /// A custom event is published.
    Custom {
        /// Its type.
        event_type: String,
        /// Compact JSON.
        payload: Box<str>,
        /// Agent that the event is about.
        agent: Option<AgentId>,
    },
    /// An agent gets a message.
    Message {
        /// Which agent.
        agent: AgentId,
        /// What is said.
        text: String,
    },
}

/// One line of a rehearsal's fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fire {
    /// Its place among all of them, from 1.
    pub number: u64,
    /// `schedule`, `cron` or `trigger`.
    pub kind: &'static str,
    /// Which one.
    pub id: Uuid,
    /// The name of a cron job.
    pub name: Option<Box<str>>,
    /// Agent.
    pub agent: AgentId,
    /// The agent's name.
    pub agent_name: Box<str>,
    /// Slot, or time of the event.
    pub nominal_at: Timestamp,
    /// End time.
    pub fired_at: Timestamp,
    /// How it ended.
    pub outcome: &'static str,
    /// Whether it waited for the previous run.
    pub queued: bool,
    /// How many slots it stands for.
    pub count: u32,
    /// Why no turn was started.
    pub reason: Option<Box<str>>,
    /// Event kind of a trigger.
    pub event: Option<&'static str>,
}

/// Filter for fires.
#[derive(Clone, Copy, Debug)]
pub struct FireRange {
    /// Those behind this number; 0 is from the first.
    pub after: u64,
    /// At most so many.
    pub limit: usize,
    /// Only those that ended so: one of [`OUTCOMES`].
    pub outcome: Option<&'static str>,
}

/// A page of fires; it may be short, even empty, and still have a next one.
#[derive(Clone, Debug, Default)]
pub struct FirePage {
    /// The fires.
    pub fires: Vec<Fire>,
    /// Where the next page begins; `None` behind the last.
    pub next: Option<u64>,
    /// Total number of fires with any outcome.
    pub total: u64,
}

/// How fires end, in the words of the API.
pub const OUTCOMES: [&str; 12] = [
    "fired",
    "missed",
    "overlapped",
    "refused",
    "agent_stopped",
    "over_budget",
    "disabled",
    "exhausted",
    "too_deep",
    "cooling_down",
    "rate_limited",
    "waiting",
];

/// Counts by the words of [`OUTCOMES`]; those that did not come up are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct OutcomeCounts(pub BTreeMap<&'static str, u64>);

/// Why a rehearsal did not begin, or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RehearsalError {
    /// A key of the request is wrong (400).
    #[error("{text}")]
    BadField {
        /// Which.
        field: String,
        /// What is wrong.
        text: String,
    },
    /// There is no such rehearsal or snapshot (404).
    #[error("{0}")]
    NotFound(String),
    /// One runs (409).
    #[error("{0}")]
    Running(String),
    /// The daemon is not ready (503).
    #[error("the daemon is still loading; try again in a moment")]
    NotReady,
    /// The disk failed (500); the reason is in the log.
    #[error("{0}")]
    Failed(String),
}

/// What a removal came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It runs, and will end soon.
    Cancelling,
    /// It is gone.
    Removed,
}

/// Rehearses. Every call but those of lists and reports touches the disk: on a tokio worker use `spawn_blocking`.
pub trait Rehearsals: Send + Sync + 'static {
    /// Begins one on a thread of its own.
    ///
    /// # Errors
    /// [`RehearsalError`]: nothing was begun.
    fn begin(&self, plan: Plan) -> Result<Status, RehearsalError>;

    /// All that are kept, the newest first.
    fn list(&self) -> Vec<Status>;

    /// One, with its report once it has ended.
    fn get(&self, id: Uuid) -> Option<(Status, Option<Arc<Report>>)>;

    /// Lines of its fires.
    ///
    /// # Errors
    /// [`RehearsalError`]: there is none, it runs still, or the disk fails.
    fn fires(&self, id: Uuid, range: FireRange) -> Result<FirePage, RehearsalError>;

    /// Cancels one that runs, removes one that has ended.
    ///
    /// # Errors
    /// [`RehearsalError::NotFound`].
    fn remove(&self, id: Uuid) -> Result<Removal, RehearsalError>;
}
