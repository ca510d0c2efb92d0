//! What the routes of schedules and of cron jobs share: the record in JSON, the words of policies, lists and previews.

use agentsvc_components::manifest::SessionMode;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, RunResult, ScheduleKind, Tally};
use agentsvc_components::{AgentId, ScheduleId};
use agentsvc_systems::schedule::{ListSchedules, PreviewRule, Rule, RunSchedule, ScheduleView};
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::pages::{ListQuery, Shape};
use crate::http::reply::Response;
use crate::http::shape::{shape, words};
use crate::http::timestamp::Moment;
use crate::http::{lists, reply};

words! {
    /// Missed policy.
    #[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub(crate) enum Missed for MissedPolicy {
        /// Slots more than a minute late do not fire.
        Skip,
        /// Only the newest missed slot fires.
        One,
        /// Every missed slot fires.
        All,
    }
}

words! {
    /// Overlap policy.
    #[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub(crate) enum Overlap for OverlapPolicy {
        /// The slot is skipped.
        Skip,
        /// The slot waits.
        Queue,
        /// The slot fires in a new session.
        Parallel,
    }
}

words! {
    /// Session continuity of the turns.
    #[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub(crate) enum Mode for SessionMode {
        /// The agent's current session.
        Persistent,
        /// A new session for each turn.
        New,
    }
}

/// A schedule or cron job.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ScheduleShape<'a> {
    id: Uuid,
    /// The same as `id`; only for a schedule that was just created.
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule_id: Option<Uuid>,
    /// The same as `id`; only for a cron job that was just created, and in its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<Uuid>,
    agent_id: Uuid,
    name: Option<&'a str>,
    /// The rule of a schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<&'a str>,
    /// The rule of a cron job.
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<&'a str>,
    /// The zone of a cron expression.
    timezone: &'a str,
    prompt: &'a str,
    enabled: bool,
    missed_policy: Missed,
    overlap_policy: Overlap,
    /// null means as in the agent's manifest.
    session_mode: Option<Mode>,
    created_at: Moment,
    updated_at: Moment,
    /// Slot that fired last, or the time of a later manual run.
    last_run: Option<Moment>,
    /// Next slot; null if it is disabled.
    next_run: Option<Moment>,
    last_result: Option<ResultShape<'a>>,
    /// Turns started so far, including manual runs.
    run_count: u64,
    /// Turns that have not ended.
    open_runs: u32,
    /// Slots waiting for the open turn to end.
    waiting: usize,
    outcomes: Outcomes,
}

/// Result of the last slot or run.
#[derive(Serialize, JsonSchema)]
struct ResultShape<'a> {
    /// `completed`, `failed` or `stopped`; without a turn, `missed`, `overlapped`, `refused` or `agent_stopped`; in
    /// either case, `over_budget`.
    status: &'static str,
    /// The response, or a description of the outcome.
    text: &'a str,
    at: Moment,
}

impl<'a> ResultShape<'a> {
    fn of(result: &'a RunResult) -> Self {
        Self { status: result.status.as_str(), text: &result.text, at: Moment(result.at) }
    }
}

shape! {
    /// Counts of slots (`fired` to `over_budget`) and turns (`completed` to `stopped`) by outcome.
    struct Outcomes from tally: Tally {
        let Tally { fired, missed, overlapped, refused, agent_stopped, over_budget, completed, failed, stopped } =
            tally;
    } {
        fired: u64 = fired,
        missed: u64 = missed,
        overlapped: u64 = overlapped,
        refused: u64 = refused,
        agent_stopped: u64 = agent_stopped,
        over_budget: u64 = over_budget,
        completed: u64 = completed,
        failed: u64 = failed,
        stopped: u64 = stopped,
    }
}

impl<'a> ScheduleShape<'a> {
    /// The shape of a schedule or cron job.
    pub(crate) fn of(view: &'a ScheduleView) -> Self {
        let is_job = view.kind == ScheduleKind::Cron;
        Self {
            id: view.id.0,
            schedule_id: None,
            job_id: None,
            agent_id: view.agent.0,
            name: view.name.as_deref(),
            cron: (!is_job).then_some(&*view.rule),
            schedule: is_job.then_some(&*view.rule),
            timezone: &view.timezone,
            prompt: &view.prompt,
            enabled: view.enabled,
            missed_policy: view.missed.into(),
            overlap_policy: view.overlap.into(),
            session_mode: view.session_mode.map(Mode::from),
            created_at: Moment(view.created_at),
            updated_at: Moment(view.updated_at),
            last_run: view.past.last_run.map(Moment),
            next_run: view.next_run.map(Moment),
            last_result: view.past.last_result.as_ref().map(ResultShape::of),
            run_count: view.past.run_count,
            open_runs: view.open,
            waiting: view.past.queue.len(),
            outcomes: view.past.tally.into(),
        }
    }

    /// The same with the id under the name that the family gives it.
    pub(crate) fn named(view: &'a ScheduleView) -> Self {
        let shape = Self::of(view);
        match view.kind {
            ScheduleKind::Schedule => Self { schedule_id: Some(view.id.0), ..shape },
            ScheduleKind::Cron => Self { job_id: Some(view.id.0), ..shape },
        }
    }
}

/// A schedule or cron job that writes itself in its shape.
struct Item(ScheduleView);

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ScheduleShape::of(&self.0).serialize(serializer)
    }
}

/// Which to list.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ScheduleQuery {
    /// Only of this agent.
    agent_id: Option<Uuid>,
    /// Maximum number of items. `next_cursor` of the response leads to the next page.
    limit: Option<usize>,
    /// Cursor of the previous page.
    cursor: Option<String>,
}

/// Lists a family under `key`.
pub(crate) async fn list(call: Call, kind: ScheduleKind, key: &'static str) -> Result<Response, Error> {
    let ScheduleQuery { agent_id, limit, cursor } = call.query()?;
    let agent = agent_id.map(AgentId);
    let command = move |after, limit| ListSchedules { kind, agent, after, limit };
    lists::of_world(&call, ListQuery { limit, cursor }, Shape::of(key), command, Item).await
}

/// Reads a rule only to say at which column it is wrong; the world reads it again.
///
/// # Errors
/// 400 naming the field, with `column` beside it.
pub(crate) fn check_rule(kind: ScheduleKind, rule: Option<&str>) -> Result<(), Error> {
    let field = kind.rule_field();
    let wrong = |error: agentsvc_systems::schedule::RuleError| {
        Error::bad_field(field, format!("{field}: {error}")).with("column", error.column)
    };
    rule.map_or(Ok(()), |rule| Rule::parse(rule).map(drop).map_err(wrong))
}

/// The next slots of a rule.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Preview {
    rule: String,
    timezone: Box<str>,
    next_runs: Vec<Moment>,
}

/// Slots of a preview when nothing else is said.
const PREVIEW_SLOTS: usize = 5;

/// Answers with the next slots of a rule.
pub(crate) async fn preview(
    call: &Call,
    kind: ScheduleKind,
    rule: Option<String>,
    timezone: Option<String>,
    count: Option<usize>,
) -> Result<Response, Error> {
    let field = kind.rule_field();
    let missing = || Error::bad_field(field, format!("query parameter '{field}' is missing"));
    let rule = rule.ok_or_else(missing)?;
    check_rule(kind, Some(&rule))?;
    if count == Some(0) {
        return Err(Error::bad_field("count", "query parameter 'count' must be at least 1"));
    }
    let count = count.unwrap_or(PREVIEW_SLOTS);
    let asked = PreviewRule { kind, rule: rule.as_str().into(), timezone: timezone.map(Into::into), count };
    let (slots, timezone) = call.ask(asked).await?;
    reply::ok(&Preview { rule, timezone, next_runs: slots.into_iter().map(Moment).collect() })
}

/// A started manual run.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Started {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<Uuid>,
    turn_id: Uuid,
    session_id: Uuid,
}

/// No fields: the route takes no body, but a broken one is refused.
#[derive(Default, Deserialize)]
struct Nothing {}

/// Runs one now.
pub(crate) async fn run(call: &Call, kind: ScheduleKind) -> Result<Response, Error> {
    let id: ScheduleId = call.id("id")?;
    let Nothing {} = call.json_or_default()?;
    let started = call.ask(RunSchedule { kind, id }).await?;
    let is_job = kind == ScheduleKind::Cron;
    reply::json(
        StatusCode::OK,
        &Started {
            status: "started",
            schedule_id: (!is_job).then_some(id.0),
            job_id: is_job.then_some(id.0),
            turn_id: started.turn.0,
            session_id: started.session.0,
        },
    )
}
