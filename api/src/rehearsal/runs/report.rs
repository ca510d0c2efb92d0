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
    /// The moment it begins at, in virtual time.
    pub from_at: String,
    /// The moment it ends at.
    pub until: String,
    /// `builtin` or `recorded`.
    pub model: &'static str,
    /// Its randomness.
    pub seed: u64,
    /// When it was asked for, in real time.
    pub created_at: String,
    /// When it ended, in real time.
    pub ended_at: Option<String>,
    /// How far it is.
    pub progress: Progress,
    /// Why it failed.
    pub error: Option<String>,
}

/// How far a rehearsal is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Progress {
    /// Its virtual time.
    pub at: String,
    /// The part of its time that is behind it, 0 to 1.
    pub share: f64,
    /// Fires so far, skips included.
    pub fires: u64,
    /// Turns that have ended so far.
    pub turns: u64,
}

/// What came of a rehearsal.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// How far it came.
    pub rehearsed_until: String,
    /// Real seconds that it took.
    pub seconds: f64,
    /// How slots and matches ended.
    pub outcomes: OutcomeCounts,
    /// Lines of `/fires`.
    pub fires_listed: u64,
    /// Fires beyond those.
    pub fires_left_out: u64,
    /// How turns ended.
    pub turns: Turns,
    /// Model calls.
    pub calls: u64,
    /// Their tokens.
    pub tokens: Tokens,
    /// The forecast.
    pub cost: Cost,
    /// Slots that met an open run of their schedule.
    pub overlaps: Overlaps,
    /// What fired nothing, by reason.
    pub skips: Vec<SkipLine>,
    /// When budgets ran short.
    pub budgets: Vec<BudgetLine>,
    /// Tool calls that would wait for a person.
    pub approvals: Approvals,
    /// What became of the injected events.
    pub events: Told,
    /// The minute with the most fires.
    pub busiest_minute: Option<BusiestMinute>,
    /// Schedules, cron jobs and triggers, the busiest first.
    pub sources: Vec<SourceLine>,
    /// Those beyond the bound.
    pub sources_left_out: usize,
    /// Agents, the dearest first.
    pub agents: Vec<AgentLine>,
    /// Those beyond the bound.
    pub agents_left_out: usize,
    /// Fires and cost over time.
    pub timeline: Timeline,
}

/// How turns ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Turns {
    /// With an answer.
    pub completed: u64,
    /// Without one, stopped ones included.
    pub failed: u64,
    /// Without one, because a budget was used up.
    pub over_budget: u64,
    /// Not at all.
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

/// What it cost, and what it would.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Cost {
    /// What the calls of the rehearsal cost.
    pub rehearsed_usd: f64,
    /// What so many turns of these agents cost by their history.
    pub forecast_usd: f64,
    /// The lower end of the interval.
    pub low_usd: f64,
    /// The upper end of the interval.
    pub high_usd: f64,
    /// The part of cases that it holds.
    pub interval: f64,
    /// Agents whose forecast comes from their history.
    pub agents_with_history: usize,
    /// Agents whose forecast is what the rehearsal cost.
    pub agents_estimated: usize,
    /// Calls of models whose price is not known.
    pub unpriced_calls: u64,
}

/// Slots that met an open run of their schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Overlaps {
    /// Waited for its end.
    pub queued: u64,
    /// Were left out.
    pub skipped: u64,
    /// Found too many waiting.
    pub refused: u64,
    /// Waited still at the end.
    pub waiting: u64,
    /// The longest wait.
    pub longest_wait_secs: f64,
}

/// What fired nothing for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkipLine {
    /// `schedule`, `cron` or `trigger`.
    pub kind: &'static str,
    /// How they ended.
    pub outcome: &'static str,
    /// Why; empty where the outcome says it.
    pub reason: String,
    /// How many.
    pub count: u64,
}

/// A budget ran short.
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
    /// The limit of money.
    pub limit_usd: Option<f64>,
    /// The limit of tokens.
    pub limit_tokens: Option<u64>,
    /// When.
    pub at: String,
}

/// Tool calls that would wait for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Approvals {
    /// How many.
    pub requested: u64,
    /// How many ended by their deadline.
    pub expired: u64,
    /// The first of them.
    pub items: Vec<ApprovalLine>,
}

/// A tool call that would wait for a person.
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

/// What became of the injected events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Told {
    /// How many the world took.
    pub told: u64,
    /// Those it did not.
    pub refused: Vec<RefusedEvent>,
}

/// An injected event that the world did not take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefusedEvent {
    /// Its place in the request, from 0.
    pub number: usize,
    /// Why.
    pub reason: String,
}

/// The minute with the most fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BusiestMinute {
    /// When it begins.
    pub at: String,
    /// Turns that began in it.
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
    /// Who acts.
    pub agent_id: Uuid,
    /// The agent's name.
    pub agent_name: String,
    /// How its slots or matches ended.
    pub outcomes: OutcomeCounts,
    /// Its turns that gave an answer.
    pub turns_completed: u64,
    /// Its turns that did not.
    pub turns_failed: u64,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AgentLine {
    /// Which.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Turns that schedules and triggers began.
    pub fires: u64,
    /// Turns that ended.
    pub turns: u64,
    /// Those without an answer.
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
    /// Where the forecast comes from: `history` or `estimate`.
    pub basis: &'static str,
    /// Turns of its history that were looked at.
    pub history_turns: u64,
}

/// Equal parts of the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Timeline {
    /// Their length.
    pub bucket_secs: u64,
    /// All of them, in order.
    pub buckets: Vec<TimelineBucket>,
}

/// One part of the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TimelineBucket {
    /// When it begins.
    pub at: String,
    /// Turns that began.
    pub fires: u64,
    /// Slots and matches that began none.
    pub skips: u64,
    /// Turns that ended.
    pub turns: u64,
    /// What its calls cost.
    pub cost_usd: f64,
}
