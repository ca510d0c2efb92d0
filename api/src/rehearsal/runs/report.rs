//! The state and the report of a rehearsal, as JSON. Moments are RFC 3339 in UTC, money is in dollars.

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::OutcomeCounts;

/// A rehearsal, without its report.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Status {
    /// Which.
    pub id: Uuid,
    /// `running`, `completed`, `failed` or `cancelled`.
    pub state: &'static str,
    /// `now`, or the snapshot.
    pub from: String,
    /// Start in virtual time.
    pub from_at: String,
    /// End in virtual time.
    pub until: String,
    /// `builtin` or `recorded`.
    pub model: &'static str,
    /// Random seed.
    pub seed: u64,
    /// Start in real time.
    pub created_at: String,
    /// End in real time.
    pub ended_at: Option<String>,
    /// Progress.
    pub progress: Progress,
    /// Why it failed.
    pub error: Option<String>,
}

/// Progress of a rehearsal.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Progress {
    /// Current virtual time.
    pub at: String,
    /// Completed share, 0 to 1.
    pub share: f64,
    /// Fires so far, including skipped ones.
    pub fires: u64,
    /// Turns that have ended so far.
    pub turns: u64,
}

/// Report of a rehearsal.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// Virtual time reached.
    pub rehearsed_until: String,
    /// Duration in real seconds.
    pub seconds: f64,
    /// Slots and matches by outcome.
    pub outcomes: OutcomeCounts,
    /// Lines of `/fires`.
    pub fires_listed: u64,
    /// Fires beyond those.
    pub fires_left_out: u64,
    /// Turns by outcome.
    pub turns: Turns,
    /// Model calls.
    pub calls: u64,
    /// Their tokens.
    pub tokens: Tokens,
    /// The forecast.
    pub cost: Cost,
    /// Slots that overlapped with an open run.
    pub overlaps: Overlaps,
    /// Slots and matches that did not fire, by reason.
    pub skips: Vec<SkipLine>,
    /// Budget warnings and exceeded budgets.
    pub budgets: Vec<BudgetLine>,
    /// Tool calls that would wait for approval.
    pub approvals: Approvals,
    /// Results of the injected events.
    pub events: Told,
    /// The minute with the most fires.
    pub busiest_minute: Option<BusiestMinute>,
    /// Schedules, cron jobs and triggers, busiest first.
    pub sources: Vec<SourceLine>,
    /// Number omitted from the list.
    pub sources_left_out: usize,
    /// Agents, most expensive first.
    pub agents: Vec<AgentLine>,
    /// Number omitted from the list.
    pub agents_left_out: usize,
    /// Fires and cost over time.
    pub timeline: Timeline,
}

/// Turns by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Turns {
    /// Completed.
    pub completed: u64,
    /// Failed or stopped.
    pub failed: u64,
    /// Failed because a budget was exhausted.
    pub over_budget: u64,
    /// Still open.
    pub open: u64,
}

/// Tokens of model calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tokens {
    /// Of prompts.
    pub input: u64,
    /// Of answers.
    pub output: u64,
}

/// Simulated cost and forecast.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Cost {
    /// Cost of the rehearsed calls.
    pub rehearsed_usd: f64,
    /// Forecast from the agents' history.
    pub forecast_usd: f64,
    /// The lower end of the interval.
    pub low_usd: f64,
    /// The upper end of the interval.
    pub high_usd: f64,
    /// Confidence level of the interval.
    pub interval: f64,
    /// Agents with a forecast from their history.
    pub agents_with_history: usize,
    /// Agents with a forecast from the rehearsed cost.
    pub agents_estimated: usize,
    /// Calls of models without a known price.
    pub unpriced_calls: u64,
}

/// Slots that overlapped with an open run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Overlaps {
    /// Waited for the open run.
    pub queued: u64,
    /// Skipped.
    pub skipped: u64,
    /// Refused because too many were waiting.
    pub refused: u64,
    /// Still waiting at the end.
    pub waiting: u64,
    /// The longest wait.
    pub longest_wait_secs: f64,
}

/// Slots or matches that did not fire for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkipLine {
    /// `schedule`, `cron` or `trigger`.
    pub kind: &'static str,
    /// How they ended.
    pub outcome: &'static str,
    /// Reason; empty if the outcome explains it.
    pub reason: String,
    /// How many.
    pub count: u64,
}

/// A budget warning or an exceeded budget.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BudgetLine {
    /// `global` or an agent's id.
    pub scope: String,
    /// Whose.
    pub agent_id: Option<Uuid>,
    /// The agent's name.
    pub agent_name: Option<String>,
    /// `hourly`, `daily` or `monthly`.
    pub period: String,
    /// `warning` or `exceeded`.
    pub event: &'static str,
    /// Limit in dollars.
    pub limit_usd: Option<f64>,
    /// Limit in tokens.
    pub limit_tokens: Option<u64>,
    /// When.
    pub at: String,
}

/// Tool calls that would wait for approval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Approvals {
    /// How many.
    pub requested: u64,
    /// Number that expired.
    pub expired: u64,
    /// The first of them.
    pub items: Vec<ApprovalLine>,
}

/// A tool call that would wait for approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ApprovalLine {
    /// Whose.
    pub agent_id: Uuid,
    /// The agent's name.
    pub agent_name: String,
    /// Which tool.
    pub tool: String,
    /// When.
    pub at: String,
}

/// Results of the injected events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Told {
    /// Number accepted.
    pub told: u64,
    /// Rejected events.
    pub refused: Vec<RefusedEvent>,
}

/// A rejected event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefusedEvent {
    /// Index in the request, from 0.
    pub number: usize,
    /// Why.
    pub reason: String,
}

/// The minute with the most fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BusiestMinute {
    /// When it begins.
    pub at: String,
    /// Turns started in it.
    pub fires: u64,
}

/// A schedule, cron job or trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SourceLine {
    /// `schedule`, `cron` or `trigger`.
    pub kind: &'static str,
    /// Which.
    pub id: Uuid,
    /// The name of a cron job.
    pub name: Option<String>,
    /// The rule, or the pattern as JSON text.
    pub rule: String,
    /// Agent.
    pub agent_id: Uuid,
    /// The agent's name.
    pub agent_name: String,
    /// Its slots or matches by outcome.
    pub outcomes: OutcomeCounts,
    /// Completed turns.
    pub turns_completed: u64,
    /// Failed turns.
    pub turns_failed: u64,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AgentLine {
    /// Which.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Turns started by schedules and triggers.
    pub fires: u64,
    /// Turns that ended.
    pub turns: u64,
    /// Failed turns.
    pub turns_failed: u64,
    /// Model calls.
    pub calls: u64,
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// What they cost in the rehearsal.
    pub rehearsed_usd: f64,
    /// The forecast.
    pub forecast_usd: f64,
    /// The lower end of its interval.
    pub low_usd: f64,
    /// The upper end of its interval.
    pub high_usd: f64,
    /// Source of the forecast: `history` or `estimate`.
    pub basis: &'static str,
    /// Turns of its history that were used.
    pub history_turns: u64,
}

/// Time buckets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Timeline {
    /// Length of a bucket.
    pub bucket_secs: u64,
    /// All of them, in order.
    pub buckets: Vec<TimelineBucket>,
}

/// A time bucket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TimelineBucket {
    /// When it begins.
    pub at: String,
    /// Turns started.
    pub fires: u64,
    /// Slots and matches that started no turn.
    pub skips: u64,
    /// Turns that ended.
    pub turns: u64,
    /// Cost of its calls.
    pub cost_usd: f64,
}
