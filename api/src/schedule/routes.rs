//! Schedules: agents that act by time (spec 1, Schedules).

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

const KIND: ScheduleKind = ScheduleKind::Schedule;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/schedules", "List schedules", |call| Box::pin(shape::list(call, KIND, "schedules")))
        .reaching(Reach::Filtered)
        .large()
        .query::<ScheduleQuery>()
        .replies(&[
            Reply::json::<ScheduleList>(200, "the schedules in order of creation"),
            Reply::error(404, "the agent does not exist"),
        ]),
    Route::post("/api/schedules", "Create a schedule", |call| Box::pin(create(call)))
        .runs_agents()
        .reaching(Reach::Filtered)
        .body::<CreateBody>()
        .replies(&[Reply::json::<ScheduleShape<'_>>(201, "created"), Reply::error(404, "the agent does not exist")]),
    Route::get("/api/schedules/preview", "Preview the next times of a rule", |call| Box::pin(preview(call)))
        .reaching(Reach::Shared)
        .query::<PreviewQuery>()
        .replies(&[Reply::json::<Preview>(200, "the next times")]),
    Route::get("/api/schedules/{id}", "Get a schedule", |call| Box::pin(show(call)))
        .reaching(Reach::Filtered)
        .replies(&[Reply::json::<ScheduleShape<'_>>(200, "the schedule")]),
    Route::put("/api/schedules/{id}", "Update a schedule", |call| Box::pin(update(call)))
        .reaching(Reach::Filtered)
        .body::<UpdateBody>()
        .replies(&[Reply::json::<ScheduleShape<'_>>(200, "the updated schedule")]),
    Route::delete("/api/schedules/{id}", "Delete a schedule", |call| Box::pin(remove(call)))
        .reaching(Reach::Filtered)
        .replies(&[Reply::json::<Removed>(200, "deleted")]),
    Route::post("/api/schedules/{id}/run", "Run a schedule now", |call| Box::pin(run(call)))
        .runs_agents()
        .reaching(Reach::Filtered)
        .replies(&[Reply::json::<Started>(200, "a turn was started"), Reply::error(409, "the agent is not running")]),
];

list_schema! {
    /// A list of schedules.
    ScheduleList {
        schedules: ScheduleShape<'static>,
        /// Schedules in all, or of the agent.
        total: u64
    }
}

schedule_family! {
    /// A new schedule.
    #[schemars(rename = "CreateBody6")]
    rule: cron, name: Option<String>
}

/// The schedule was deleted.
#[derive(Serialize, JsonSchema)]
struct Removed {
    status: &'static str,
    schedule_id: Uuid,
}

async fn remove(call: Call) -> Result<Response, Error> {
    let id: ScheduleId = call.id("id")?;
    call.ask(RemoveSchedule { kind: KIND, id, owner: None }).await?;
    reply::ok(&Removed { status: "removed", schedule_id: id.0 })
}
