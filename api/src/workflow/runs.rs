//! Runs of workflows: begun, awaited, read and cancelled (spec 1, Workflows, Workflow run).

use agentsvc_systems::workflow::error_codes;
use std::sync::Arc;

use agentsvc_components::workflow::{RunState, WorkflowRun};
use agentsvc_components::{RunId, WorkflowId};
use agentsvc_systems::workflow::{
    CancelRun, GetRun, ListRuns, RunEnd, RunSummary, RunView, RunWorkflow, StartRun, WorkflowChoice,
};
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::pages::{ListQuery, Shape};
use crate::http::reply::Response;
use crate::http::route::{Reach, Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;
use crate::http::{lists, reply};

/// What a run costs the client's rate budget, as a message does.
const COST: u32 = 10;

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/workflows/{id}/run", "Run a workflow", |call| Box::pin(run(call)))
        .runs_agents()
        .reaching(Reach::Filtered)
        .cost(COST)
        .body::<RunBody>()
        .replies(&[
            Reply::json::<Ended>(200, "the run has completed"),
            Reply::json::<Begun>(202, "the run was started (with `async`)"),
            Reply::error(409, "the run was cancelled"),
            Reply::error(500, "the run failed"),
        ]),
    Route::get("/api/workflows/{id}/runs", "List the runs of a workflow", |call| Box::pin(list(call)))
        .reaching(Reach::Filtered)
        .large()
        .query::<ListQuery>()
        .replies(&[Reply::json::<Vec<Item>>(200, "the runs, oldest first")]),
    Route::get("/api/workflows/runs/{id}", "Get a run and its steps", |call| Box::pin(show(call)))
        .reaching(Reach::Filtered)
        .large()
        .replies(&[Reply::json::<Detail>(200, "the run")]),
    Route::post("/api/workflows/runs/{id}/cancel", "Cancel a run", |call| Box::pin(cancel(call)))
        .reaching(Reach::Filtered)
        .replies(&[Reply::json::<Begun>(200, "cancelled"), Reply::error(409, "the run has ended")]),
];

/// Options of the run.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct RunBody {
    /// Value of `{{input}}` in the first step. Default: empty.
    input: Option<String>,
    /// Return 202 with the run's id instead of waiting.
    #[serde(rename = "async")]
    is_async: Option<bool>,
}

/// A completed run.
#[derive(Serialize, JsonSchema)]
struct Ended {
    run_id: Uuid,
    output: Arc<str>,
    status: &'static str,
}

/// A started or cancelled run.
#[derive(Serialize, JsonSchema)]
struct Begun {
    run_id: Uuid,
    status: &'static str,
}

async fn run(call: Call) -> Result<Response, Error> {
    let workflow: WorkflowId = call.id("id")?;
    let RunBody { input, is_async } = call.json_or_default()?;
    let input = input.unwrap_or_default();
    if is_async.unwrap_or_default() {
        let run = call.ask(StartRun { workflow, input }).await?;
        return reply::json(StatusCode::ACCEPTED, &Begun { run_id: run.0, status: "running" });
    }
    let workflow = WorkflowChoice::Id(workflow);
    let RunEnd { run, state, output, error, .. } = call.ask(RunWorkflow { workflow, input, caller: None }).await?;
    let (status, word, code) = match state {
        RunState::Completed => return reply::ok(&Ended { run_id: run.0, output, status: "completed" }),
        RunState::Cancelled => (StatusCode::CONFLICT, "cancelled", error_codes::RUN_CANCELLED),
        RunState::Failed | RunState::Pending | RunState::Running => {
            (StatusCode::INTERNAL_SERVER_ERROR, "failed", error_codes::RUN_FAILED)
        }
    };
    let why = error.map_or_else(|| "the run failed".to_owned(), String::from);
    Err(Error::new(status, why).with("run_id", run.to_string()).with("status", word).code(code))
}

shape! {
    /// A run in a list.
    struct Item from summary: RunSummary {
        id: Uuid = summary.id.0,
        workflow_id: Uuid = summary.workflow.0,
        workflow_name: Box<str> = summary.name,
        /// `Pending`, `Running`, `Completed`, `Failed` or `Cancelled`.
        state: &'static str = summary.state.as_str(),
        /// Completed steps.
        steps_completed: usize = summary.steps_completed,
        started_at: Moment = Moment(summary.started_at),
        /// Null while the run is open.
        completed_at: Option<Moment> = summary.ended_at.map(Moment),
        /// Why it failed or was cancelled.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Box<str>> = summary.error,
    }
}

async fn list(call: Call) -> Result<Response, Error> {
    let workflow: WorkflowId = call.id("id")?;
    let command = move |after, limit| ListRuns { workflow, after, limit };
    lists::of_world(&call, call.query()?, Shape::array, command, Item::from).await
}

/// A run with its steps.
#[derive(Serialize, JsonSchema)]
struct Detail {
    #[serde(flatten)]
    item: Item,
    /// Input; the first 8 KiB of an ended run.
    input: Arc<str>,
    /// Output; null until it is completed.
    output: Option<Arc<str>>,
    steps: Vec<StepDetail>,
}

/// State of a step of a run.
#[derive(Serialize, JsonSchema)]
struct StepDetail {
    name: Box<str>,
    mode: &'static str,
    /// `Pending`, `Running`, `Retrying`, `Completed`, `Skipped`, `Failed` or `Cancelled`.
    state: &'static str,
    /// Attempts over all iterations.
    attempts: u32,
    /// Completed iterations.
    iterations: u32,
    started_at: Option<Moment>,
    completed_at: Option<Moment>,
    /// Timeout of the attempt, or start of the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<Moment>,
    /// Its running turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<Uuid>,
    /// Output; the first 8 KiB of an ended run.
    output: Option<Arc<str>>,
    /// Reason of the last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<str>>,
}

fn steps(run: &WorkflowRun) -> Vec<StepDetail> {
    let all = run.steps.iter().zip(&run.progress).zip(&run.outputs);
    all.map(|((step, progress), output)| StepDetail {
        name: step.name.clone(),
        mode: step.mode.as_str(),
        state: progress.state.as_str(),
        attempts: progress.attempts,
        iterations: progress.iterations,
        started_at: progress.started_at.map(Moment),
        completed_at: progress.ended_at.map(Moment),
        due_at: progress.due.map(Moment),
        turn_id: progress.turn.map(|turn| turn.0),
        output: output.clone(),
        error: progress.error.clone(),
    })
    .collect()
}

async fn show(call: Call) -> Result<Response, Error> {
    let RunView { id, run } = call.ask(GetRun(call.id("id")?)).await?;
    let item = Item::from(RunSummary::of(id, &run));
    reply::ok(&Detail { item, input: run.input.clone(), output: run.output.clone(), steps: steps(&run) })
}

async fn cancel(call: Call) -> Result<Response, Error> {
    let run: RunId = call.id("id")?;
    call.ask(CancelRun(run)).await?;
    reply::ok(&Begun { run_id: run.0, status: "cancelled" })
}
