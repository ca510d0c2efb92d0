//! Cron jobs: schedules with a name (spec 1, Cron jobs).

use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::{AgentId, ScheduleId};
use agentsvc_systems::schedule::{
    CreateSchedule, GetSchedule, NewSchedule, RemoveSchedule, SchedulePatch, UpdateSchedule,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::json::given;
use crate::http::lists::list_schema;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};
use crate::schedule::family::schedule_family;
use crate::schedule::shape::{self, Missed, Mode, Overlap, Preview, ScheduleQuery, ScheduleShape, Started};

const KIND: ScheduleKind = ScheduleKind::Cron;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/cron/jobs", "List cron jobs", |call| Box::pin(shape::list(call, KIND, "jobs")))
        .reaching(Reach::Filtered)
        .large()
        .query::<ScheduleQuery>()
        .replies(&[
            Reply::json::<JobList>(200, "the cron jobs in order of creation"),
            Reply::error(404, "the agent does not exist"),
        ]),
    Route::post("/api/cron/jobs", "Create a cron job", |call| Box::pin(create(call)))
        .runs_agents()
        .reaching(Reach::Filtered)
        .body::<CreateBody>()
        .replies(&[Reply::json::<ScheduleShape<'_>>(201, "created"), Reply::error(404, "the agent does not exist")]),
    Route::get("/api/cron/preview", "Preview the next times of a rule", |call| Box::pin(preview(call)))
        .reaching(Reach::Shared)
        .query::<PreviewQuery>()
        .replies(&[Reply::json::<Preview>(200, "the next times")]),
    Route::get("/api/cron/jobs/{id}", "Get a cron job", |call| Box::pin(show(call)))
        .reaching(Reach::Filtered)
        .replies(&[Reply::json::<ScheduleShape<'_>>(200, "the cron job")]),
    Route::put("/api/cron/jobs/{id}", "Update a cron job", |call| Box::pin(update(call)))
        .reaching(Reach::Filtered)
        .body::<UpdateBody>()
        .replies(&[Reply::json::<ScheduleShape<'_>>(200, "the updated cron job")]),
    Route::delete("/api/cron/jobs/{id}", "Delete a cron job", |call| Box::pin(remove(call)))
        .reaching(Reach::Filtered)
        .replies(&[Reply::json::<Removed>(200, "deleted")]),
    Route::post("/api/cron/jobs/{id}/run", "Run a cron job now", |call| Box::pin(run(call)))
        .runs_agents()
        .reaching(Reach::Filtered)
        .replies(&[Reply::json::<Started>(200, "a turn was started"), Reply::error(409, "the agent is not running")]),
    Route::put("/api/cron/jobs/{id}/enable", "Enable or disable a cron job", |call| Box::pin(enable(call)))
        .reaching(Reach::Filtered)
        .body::<EnableBody>()
        .replies(&[Reply::json::<ScheduleShape<'_>>(200, "the updated cron job")]),
    Route::get("/api/cron/jobs/{id}/status", "Get the last result and the next time of a cron job", |call| {
        Box::pin(status(call))
    })
    .reaching(Reach::Filtered)
    .replies(&[Reply::json::<ScheduleShape<'_>>(200, "the cron job with its results")]),
];

list_schema! {
    /// A list of cron jobs.
    JobList {
        jobs: ScheduleShape<'static>,
        /// Cron jobs in all, or of the agent.
        total: u64
    }
}

schedule_family! {
    /// A new cron job.
    rule: schedule, name: String
}

/// The cron job was deleted.
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

/// Options of enabling a job.
#[derive(Deserialize, JsonSchema)]
struct EnableBody {
    /// Whether the job is enabled. When enabled, its times count from now.
    enabled: bool,
}

async fn enable(call: Call) -> Result<Response, Error> {
    let id: ScheduleId = call.id("id")?;
    let EnableBody { enabled } = call.json()?;
    if enabled {
        call.check_may_run()?;
    }
    let patch = SchedulePatch { enabled: Some(enabled), ..SchedulePatch::default() };
    let view = call.ask(UpdateSchedule { kind: KIND, id, patch }).await?;
    reply::ok(&ScheduleShape::named(&view))
}

async fn status(call: Call) -> Result<Response, Error> {
    let view = call.ask(GetSchedule { kind: KIND, id: call.id("id")? }).await?;
    reply::ok(&ScheduleShape::named(&view))
}
