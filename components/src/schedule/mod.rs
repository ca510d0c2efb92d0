//! Schedules and cron jobs (spec 1, Schedules and Cron jobs): one entity each, with a
//! [`ScheduleId`](crate::ScheduleId) and this component. Both are the same thing in two families of routes.

use crate::kernel::domain::Domain;
use crate::kernel::words::enum_words;
pub mod record;
mod spans;

pub use spans::Spans;

use bevy_ecs::prelude::{Component, Entity};
use serde::{Deserialize, Serialize};

use crate::kernel::record::is_default;
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;
use crate::manifest::{QuietHours, SessionMode};

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "schedule", uses: &["manifest"] };

/// Which family of routes a schedule belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleKind {
    /// `/api/schedules`.
    Schedule,
    /// `/api/cron/jobs`.
    Cron,
}

impl ScheduleKind {
    /// What it is called in sentences.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Cron => "cron job",
        }
    }

    /// The request field that holds its rule.
    #[must_use]
    pub const fn rule_field(self) -> &'static str {
        match self {
            Self::Schedule => "cron",
            Self::Cron => "schedule",
        }
    }
}

/// What happens to slots that passed while nobody could fire them: the daemon was down, the machine slept, the clock
/// jumped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedPolicy {
    /// Those that are late by more than [`SCHEDULE_LATE_MS`](crate::kernel::limit::SCHEDULE_LATE_MS) do not fire.
    Skip,
    /// The newest fires, the others do not.
    #[default]
    One,
    /// Each fires, up to [`SCHEDULE_MISSED_MAX`](crate::kernel::limit::SCHEDULE_MISSED_MAX) of them.
    All,
}

/// Overlap policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlapPolicy {
    /// The slot is skipped.
    Skip,
    /// It waits until the turn has ended.
    #[default]
    Queue,
    /// It fires at once, in a session of its own.
    Parallel,
}

/// The state of one schedule or cron job.
#[derive(Component, Clone, Debug)]
pub struct Schedule {
    /// Whose turns it begins.
    pub agent: Entity,
    /// Its family.
    pub kind: ScheduleKind,
    /// What it is called; every cron job has a name.
    pub name: Option<Box<str>>,
    /// Its rule as written: cron or interval syntax.
    pub rule: Box<str>,
    /// The IANA name of the zone whose clocks a cron expression is read by.
    pub timezone: Box<str>,
    /// Prompt for the agent.
    pub prompt: Box<str>,
    /// See there.
    pub missed: MissedPolicy,
    /// See there.
    pub overlap: OverlapPolicy,
    /// Session continuity of its turns; the agent's manifest decides when it is left out.
    pub session_mode: Option<SessionMode>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Time of the last change to its definition.
    pub updated_at: Timestamp,
    /// When its rule was set, or it was enabled: `every` and `in` are counted from here.
    pub anchored_at: Timestamp,
    /// Does it fire? `in` and `at` disable themselves after their slot.
    pub enabled: bool,
    /// Slots up to this one have their outcome.
    pub cursor: Timestamp,
    /// What came of it so far; most of a large world's schedules have not run yet.
    pub past: Option<Box<Past>>,
    /// Untrusted content that the turn had read that made it.
    pub taint: Taint,
    /// The user that the turn was for that made it, where the client named one: its turns are for that user, too.
    pub user: Option<Box<str>>,
    /// Further rules of one that a manifest asked for.
    pub wake: Option<Box<WakeRules>>,
}

/// Further rules of a schedule that a manifest asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WakeRules {
    /// Time of the day in which it has no slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<QuietHours>,
    /// Turns that may fail one after the other; with one more it is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures_max: Option<u32>,
}

impl Schedule {
    /// Bytes of the texts that say what it is.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.name.as_deref().map_or(0, str::len) + self.rule.len() + self.timezone.len() + self.prompt.len()
    }
}

/// What came of a schedule so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Past {
    /// Slots that wait for the open turn to end, oldest first; at most
    /// [`SCHEDULE_QUEUE_MAX`](crate::kernel::limit::SCHEDULE_QUEUE_MAX).
    pub queue: Vec<Timestamp>,
    /// Slot that fired last, or the time of a later manual run.
    pub last_run: Option<Timestamp>,
    /// Outcome of the last slot or run that has ended.
    pub last_result: Option<RunResult>,
    /// Turns started so far, including manual runs.
    pub run_count: u64,
    /// How its slots and turns ended, counted.
    pub tally: Tally,
    /// Slots after this and up to the cursor have had their chance to fire; those between it and the last of `done` were
    /// missed. `None` is where its rule counts from.
    pub since: Option<Timestamp>,
    /// Earlier spans of time whose slots have had their chance to fire. They never fire again, whatever the clock does.
    pub done: Spans,
    /// Turns that have failed since the last one that did not.
    #[serde(skip_serializing_if = "is_default")]
    pub failed_in_a_row: u32,
}

impl Past {
    /// The span that ends with `cursor` is over, where the rule counts from `anchor`: the next one begins after `since`.
    pub fn leave(&mut self, anchor: Timestamp, cursor: Timestamp, since: Timestamp) {
        self.done.add(self.since.unwrap_or(anchor), cursor);
        self.since = Some(since);
    }
}

/// How the slots and turns of a schedule ended, counted. Every slot is one of `fired`, `missed`, `overlapped`, `refused`,
/// `agent_stopped` and `over_budget`; every turn, runs by hand included, one of `completed`, `failed` and `stopped`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// Slots that started a turn.
    pub fired: u64,
    /// Slots that passed unnoticed, by the missed policy, or waited when the schedule was disabled.
    pub missed: u64,
    /// Slots left out because a turn was open, by the overlap policy.
    pub overlapped: u64,
    /// Slots for which there was no room: too many wait, or the daemon is full.
    pub refused: u64,
    /// Slots at which the agent did not run.
    pub agent_stopped: u64,
    /// Slots at which the agent had no budget left.
    pub over_budget: u64,
    /// Turns that gave an answer.
    pub completed: u64,
    /// Turns that failed, those for which there was no budget left included.
    pub failed: u64,
    /// Turns that were stopped or interrupted.
    pub stopped: u64,
}

impl Tally {
    /// The words of the API and their counts.
    #[must_use]
    pub const fn counts(&self) -> [(&'static str, u64); 9] {
        [
            ("fired", self.fired),
            ("missed", self.missed),
            ("overlapped", self.overlapped),
            ("refused", self.refused),
            ("agent_stopped", self.agent_stopped),
            ("over_budget", self.over_budget),
            ("completed", self.completed),
            ("failed", self.failed),
            ("stopped", self.stopped),
        ]
    }
}

enum_words! {
    /// What came of a slot or a turn.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RunStatus [as_str] {
        /// The turn gave an answer.
        Completed = "completed",
        /// The turn failed.
        Failed = "failed",
        /// The turn was stopped or interrupted.
        Stopped = "stopped",
        /// Nothing began: the slot was missed.
        Missed = "missed",
        /// Nothing began: a turn was open.
        Overlapped = "overlapped",
        /// Nothing began: there was no room.
        Refused = "refused",
        /// Nothing began: the agent did not run.
        AgentStopped = "agent_stopped",
        /// The agent had no budget left: nothing began, or the turn ended for that.
        OverBudget = "over_budget",
    }
}

/// What came of the last run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResult {
    /// How it ended.
    pub status: RunStatus,
    /// The answer, or a sentence that says what happened; at most
    /// [`SCHEDULE_RESULT_BYTES_MAX`](crate::kernel::limit::SCHEDULE_RESULT_BYTES_MAX) bytes, cut beyond.
    pub text: Box<str>,
    /// When.
    pub at: Timestamp,
}

/// What came of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SlotOutcome {
    /// It began a turn.
    Fired,
    /// It passed unnoticed.
    Missed,
    /// A turn was open.
    Overlapped,
    /// There was no room.
    Refused,
    /// The agent did not run.
    AgentStopped,
    /// The agent had no budget left.
    OverBudget,
}

impl SlotOutcome {
    /// Counts `count` slots that ended so.
    pub fn add(self, tally: &mut Tally, count: u64) {
        *match self {
            Self::Fired => &mut tally.fired,
            Self::Missed => &mut tally.missed,
            Self::Overlapped => &mut tally.overlapped,
            Self::Refused => &mut tally.refused,
            Self::AgentStopped => &mut tally.agent_stopped,
            Self::OverBudget => &mut tally.over_budget,
        } += count;
    }

    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self.status() {
            None => "fired",
            Some(status) => status.as_str(),
        }
    }

    /// How a slot without a turn shows as the last result.
    #[must_use]
    pub const fn status(self) -> Option<RunStatus> {
        match self {
            Self::Fired => None,
            Self::Missed => Some(RunStatus::Missed),
            Self::Overlapped => Some(RunStatus::Overlapped),
            Self::Refused => Some(RunStatus::Refused),
            Self::AgentStopped => Some(RunStatus::AgentStopped),
            Self::OverBudget => Some(RunStatus::OverBudget),
        }
    }
}
