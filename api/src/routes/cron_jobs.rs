//! Cron jobs: schedules with a name (spec 1, Cron jobs).

use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::{AgentId, ScheduleId};
use agentsvc_systems::schedule::{
    CreateSchedule, GetSchedule, NewSchedule, RemoveSchedule, SchedulePatch, UpdateSchedule,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::agent_change::given;
use super::schedule_shape::{self as shape, Missed, Mode, Overlap, Preview, ScheduleQuery, ScheduleShape, Started};
use crate::call::Call;
use crate::error::Error;
use crate::reply::{self, Response};
use crate::route::{Reply, Route};

const KIND: ScheduleKind = ScheduleKind::Cron;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/cron/jobs", "List cron jobs", |call| Box::pin(shape::list(call, KIND, "jobs")))
        .query::<ScheduleQuery>()
        .replies(&[
            Reply::json::<JobList>(200, "the cron jobs in order of creation"),
            Reply::error(404, "no such agent"),
        ]),
    Route::post("/api/cron/jobs", "Create a cron job", |call| Box::pin(create(call)))
        .body::<CreateBody>()
        .replies(&[Reply::json::<ScheduleShape<'_>>(201, "created"), Reply::error(404, "no such agent")]),
    Route::get("/api/cron/preview", "Read the next times of a rule", |call| Box::pin(preview(call)))
        .query::<PreviewQuery>()
        .replies(&[Reply::json::<Preview>(200, "the next times")]),
    Route::get("/api/cron/jobs/{id}", "Read a cron job", |call| Box::pin(show(call))).replies(&[Reply::json::<
        ScheduleShape<'_>,
    >(
        200, "the cron job"
    )]),
    Route::put("/api/cron/jobs/{id}", "Change a cron job", |call| Box::pin(update(call)))
        .body::<UpdateBody>()
        .replies(&[Reply::json::<ScheduleShape<'_>>(200, "the cron job as it is now")]),
    Route::delete("/api/cron/jobs/{id}", "Delete a cron job", |call| Box::pin(remove(call))).replies(&[Reply::json::<
        Removed,
    >(
        200, "deleted",
    )]),
    Route::post("/api/cron/jobs/{id}/run", "Run a cron job now", |call| Box::pin(run(call)))
        .replies(&[Reply::json::<Started>(200, "a turn began"), Reply::error(409, "the agent is not running")]),
    Route::put("/api/cron/jobs/{id}/enable", "Enable or disable a cron job", |call| Box::pin(enable(call)))
        .body::<EnableBody>()
        .replies(&[Reply::json::<ScheduleShape<'_>>(200, "the cron job as it is now")]),
    Route::get("/api/cron/jobs/{id}/status", "Read the last result and the next time", |call| Box::pin(status(call)))
        .replies(&[Reply::json::<ScheduleShape<'_>>(200, "the cron job with its results")]),
];

/// A list of cron jobs.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct JobList {
    jobs: Vec<ScheduleShape<'static>>,
    /// Cron jobs in all, or of the agent.
    total: u64,
    /// Where the next page begins, when the list was asked for with `limit`.
    next_cursor: Option<String>,
}

/// A new cron job.
#[derive(Deserialize, JsonSchema)]
struct CreateBody {
    name: String,
    agent_id: Uuid,
    /// A cron expression of 5 or 6 fields, a short form such as `@daily`, or an interval: `every 15m`, `in 2h`,
    /// `at 2026-12-01T09:00Z`.
    schedule: String,
    /// What the agent is told.
    prompt: String,
    /// true when left out.
    enabled: Option<bool>,
    /// The IANA time zone of a cron expression; UTC when left out.
    timezone: Option<String>,
    /// `one` when left out.
    missed_policy: Option<Missed>,
    /// `queue` when left out.
    overlap_policy: Option<Overlap>,
    /// As the agent's manifest says when left out.
    session_mode: Option<Mode>,
}

async fn create(call: Call) -> Result<Response, Error> {
    let body: CreateBody = call.json()?;
    shape::check_rule(KIND, Some(&body.schedule))?;
    let new = NewSchedule {
        kind: KIND,
        agent: AgentId(body.agent_id),
        name: Some(body.name.into()),
        rule: body.schedule.into(),
        timezone: body.timezone.map(Into::into),
        prompt: body.prompt.into(),
        enabled: body.enabled.unwrap_or(true),
        missed: body.missed_policy.map(Into::into).unwrap_or_default(),
        overlap: body.overlap_policy.map(Into::into).unwrap_or_default(),
        session_mode: body.session_mode.map(Into::into),
    };
    let view = call.ask(CreateSchedule { new, by_tool: false }).await?;
    reply::created(&ScheduleShape::named(&view))
}

/// Which rule to preview.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct PreviewQuery {
    /// The rule.
    schedule: Option<String>,
    /// The IANA time zone of a cron expression; UTC when left out.
    timezone: Option<String>,
    /// How many times, 1 to 100; 5 when left out.
    count: Option<usize>,
}

async fn preview(call: Call) -> Result<Response, Error> {
    let PreviewQuery { schedule, timezone, count } = call.query()?;
    shape::preview(&call, KIND, schedule, timezone, count).await
}

async fn show(call: Call) -> Result<Response, Error> {
    let view = call.ask(GetSchedule { kind: KIND, id: call.id("id")? }).await?;
    reply::ok(&ScheduleShape::of(&view))
}

/// The fields to change; what is left out, or null, stays. All are taken, or none.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct UpdateBody {
    agent_id: Option<Uuid>,
    /// Another rule counts from now.
    schedule: Option<String>,
    prompt: Option<String>,
    enabled: Option<bool>,
    name: Option<String>,
    /// Another zone counts from now.
    timezone: Option<String>,
    missed_policy: Option<Missed>,
    overlap_policy: Option<Overlap>,
    /// null follows the agent's manifest again.
    #[serde(deserialize_with = "given")]
    session_mode: Option<Option<Mode>>,
}

async fn update(call: Call) -> Result<Response, Error> {
    let id: ScheduleId = call.id("id")?;
    let body: UpdateBody = call.json()?;
    shape::check_rule(KIND, body.schedule.as_deref())?;
    let patch = SchedulePatch {
        agent: body.agent_id.map(AgentId),
        name: body.name.map(Into::into),
        rule: body.schedule.map(Into::into),
        timezone: body.timezone.map(Into::into),
        prompt: body.prompt.map(Into::into),
        enabled: body.enabled,
        missed: body.missed_policy.map(Into::into),
        overlap: body.overlap_policy.map(Into::into),
        session_mode: body.session_mode.map(|mode| mode.map(Into::into)),
    };
    let view = call.ask(UpdateSchedule { kind: KIND, id, patch }).await?;
    reply::ok(&ScheduleShape::of(&view))
}

/// A cron job is gone.
#[derive(Serialize, JsonSchema)]
struct Removed {
    status: &'static str,
    job_id: Uuid,
}

async fn remove(call: Call) -> Result<Response, Error> {
    let id: ScheduleId = call.id("id")?;
    call.ask(RemoveSchedule { kind: KIND, id, owner: None }).await?;
    reply::ok(&Removed { status: "removed", job_id: id.0 })
}

async fn run(call: Call) -> Result<Response, Error> {
    shape::run(&call, KIND).await
}

/// Is the job to fire?
#[derive(Deserialize, JsonSchema)]
struct EnableBody {
    /// Enabled, its times are counted from now; disabled, it does not fire.
    enabled: bool,
}

async fn enable(call: Call) -> Result<Response, Error> {
    let id: ScheduleId = call.id("id")?;
    let EnableBody { enabled } = call.json()?;
    let patch = SchedulePatch { enabled: Some(enabled), ..SchedulePatch::default() };
    let view = call.ask(UpdateSchedule { kind: KIND, id, patch }).await?;
    reply::ok(&ScheduleShape::named(&view))
}

async fn status(call: Call) -> Result<Response, Error> {
    let view = call.ask(GetSchedule { kind: KIND, id: call.id("id")? }).await?;
    reply::ok(&ScheduleShape::named(&view))
}
