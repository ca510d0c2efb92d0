//! Workflow definitions (spec 1, Workflows).

use agentsvc_components::workflow::{ErrorMode, Step, StepAgent, StepMode};
use agentsvc_components::{AgentId, WorkflowId};
use agentsvc_systems::workflow::{
    CreateWorkflow, GetWorkflow, ListWorkflows, NewStep, NewWorkflow, RemoveWorkflow, UpdateWorkflow, WorkflowPatch,
    WorkflowSummary, WorkflowView,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::pages::{ListQuery, Shape};
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::timestamp::Moment;
use crate::http::{lists, reply};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/workflows", "List workflows", |call| Box::pin(list(call)))
        .query::<ListQuery>()
        .replies(&[Reply::json::<Vec<Item>>(200, "the workflows, oldest first")]),
    Route::post("/api/workflows", "Create a workflow", |call| Box::pin(create(call)))
        .body::<WorkflowBody>()
        .replies(&[Reply::json::<Created>(201, "created")]),
    Route::get("/api/workflows/{id}", "Get a workflow", |call| Box::pin(show(call))).replies(&[Reply::json::<
        Definition,
    >(
        200,
        "the definition",
    )]),
    Route::put("/api/workflows/{id}", "Update a workflow", |call| Box::pin(update(call)))
        .body::<PatchBody>()
        .replies(&[Reply::json::<Definition>(200, "the updated definition")]),
    Route::delete("/api/workflows/{id}", "Delete a workflow and its runs", |call| Box::pin(remove(call)))
        .replies(&[Reply::json::<Removed>(200, "deleted; open runs are cancelled")]),
];

/// Mode of a step.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ModeWord {
    /// After the step before it.
    Sequential,
    /// In parallel with adjacent steps of the same mode, on the same input.
    FanOut,
    /// Joins the outputs of the preceding fan_out steps, without an agent.
    Collect,
    /// Only if its condition is true.
    Conditional,
    /// Repeatedly on its own output, until its condition is true.
    Loop,
}

impl From<ModeWord> for StepMode {
    fn from(word: ModeWord) -> Self {
        match word {
            ModeWord::Sequential => Self::Sequential,
            ModeWord::FanOut => Self::FanOut,
            ModeWord::Collect => Self::Collect,
            ModeWord::Conditional => Self::Conditional,
            ModeWord::Loop => Self::Loop,
        }
    }
}

/// Error mode of a step.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ErrorWord {
    /// The run fails.
    Fail,
    /// The run continues without the step.
    Skip,
    /// The step is retried with backoff; then the run fails.
    Retry,
}

impl From<ErrorWord> for ErrorMode {
    fn from(word: ErrorWord) -> Self {
        match word {
            ErrorWord::Fail => Self::Fail,
            ErrorWord::Skip => Self::Skip,
            ErrorWord::Retry => Self::Retry,
        }
    }
}

/// A step. It needs `agent_id` or `agent_name`, except for a `collect` step.
#[derive(Deserialize, JsonSchema)]
struct StepBody {
    /// Default: `step-1` and so on.
    name: Option<String>,
    /// Agent id; looked up when the step starts.
    agent_id: Option<Uuid>,
    /// Agent name; looked up when the step starts.
    agent_name: Option<String>,
    /// The message, with `{{input}}` and `{{<output_var>}}`. Default: `{{input}}`.
    prompt: Option<String>,
    /// Default: `sequential`.
    mode: Option<ModeWord>,
    /// Timeout of an attempt in seconds, 1 to 86400. Default: 120.
    timeout_secs: Option<u64>,
    /// Default: `fail`.
    error_mode: Option<ErrorWord>,
    /// Attempts after the first, for `retry`. Default: 3.
    max_retries: Option<u64>,
    /// The variable that stores the output for later steps.
    output_var: Option<String>,
    /// Condition, for `conditional`.
    condition: Option<String>,
    /// Maximum number of iterations, for `loop`, 1 to 50. Default: 5.
    max_iterations: Option<u64>,
    /// End condition, for `loop`.
    until: Option<String>,
}

impl From<StepBody> for NewStep {
    fn from(body: StepBody) -> Self {
        Self {
            name: body.name,
            agent_id: body.agent_id.map(AgentId),
            agent_name: body.agent_name,
            prompt: body.prompt,
            mode: body.mode.map(Into::into).unwrap_or_default(),
            timeout_secs: body.timeout_secs,
            error_mode: body.error_mode.map(Into::into).unwrap_or_default(),
            max_retries: body.max_retries,
            output_var: body.output_var,
            condition: body.condition,
            max_iterations: body.max_iterations,
            until: body.until,
        }
    }
}

/// A stored step.
#[derive(Serialize, JsonSchema)]
struct StepShown {
    name: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_name: Option<Box<str>>,
    prompt: Box<str>,
    mode: &'static str,
    timeout_secs: u32,
    error_mode: &'static str,
    max_retries: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_var: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<Box<str>>,
    max_iterations: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Box<str>>,
}

impl From<&Step> for StepShown {
    fn from(step: &Step) -> Self {
        let (agent_id, agent_name) = match step.agent.clone() {
            Some(StepAgent::Id(id)) => (Some(id.0), None),
            Some(StepAgent::Name(name)) => (None, Some(name)),
            None => (None, None),
        };
        Self {
            name: step.name.clone(),
            agent_id,
            agent_name,
            prompt: step.prompt.clone(),
            mode: step.mode.as_str(),
            timeout_secs: step.timeout_secs,
            error_mode: step.error_mode.as_str(),
            max_retries: step.max_retries,
            output_var: step.output_var.clone(),
            condition: step.condition.clone(),
            max_iterations: step.max_iterations,
            until: step.until.clone(),
        }
    }
}

/// A workflow in a list.
#[derive(Serialize, JsonSchema)]
struct Item {
    id: Uuid,
    name: Box<str>,
    description: Box<str>,
    /// Number of steps.
    steps: usize,
    created_at: Moment,
}

impl From<WorkflowSummary> for Item {
    fn from(summary: WorkflowSummary) -> Self {
        let WorkflowSummary { id, name, description, steps, created_at } = summary;
        Self { id: id.0, name, description, steps, created_at: Moment(created_at) }
    }
}

async fn list(call: Call) -> Result<Response, Error> {
    lists::of_world(&call, call.query()?, Shape::array, |after, limit| ListWorkflows { after, limit }, Item::from).await
}

/// A workflow to create.
#[derive(Deserialize, JsonSchema)]
struct WorkflowBody {
    name: String,
    #[serde(default)]
    description: Option<String>,
    /// 1 to 64 steps.
    steps: Vec<StepBody>,
}

/// The created workflow.
#[derive(Serialize, JsonSchema)]
struct Created {
    workflow_id: Uuid,
    name: Box<str>,
}

async fn create(call: Call) -> Result<Response, Error> {
    let WorkflowBody { name, description, steps } = call.json()?;
    let steps = steps.into_iter().map(NewStep::from).collect();
    let new = NewWorkflow { name, description: description.unwrap_or_default(), steps };
    let WorkflowView { id, name, .. } = call.ask(CreateWorkflow(new)).await?;
    reply::created(&Created { workflow_id: id.0, name })
}

/// A workflow with its steps.
#[derive(Serialize, JsonSchema)]
struct Definition {
    id: Uuid,
    name: Box<str>,
    description: Box<str>,
    steps: Vec<StepShown>,
    created_at: Moment,
    updated_at: Moment,
}

impl From<WorkflowView> for Definition {
    fn from(view: WorkflowView) -> Self {
        Self {
            id: view.id.0,
            name: view.name,
            description: view.description,
            steps: view.steps.iter().map(StepShown::from).collect(),
            created_at: Moment(view.created_at),
            updated_at: Moment(view.updated_at),
        }
    }
}

async fn show(call: Call) -> Result<Response, Error> {
    reply::ok(&Definition::from(call.ask(GetWorkflow(call.id("id")?)).await?))
}

/// Fields to change; omitted fields are unchanged. `steps` replaces all steps.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct PatchBody {
    name: Option<String>,
    description: Option<String>,
    steps: Option<Vec<StepBody>>,
}

async fn update(call: Call) -> Result<Response, Error> {
    let workflow: WorkflowId = call.id("id")?;
    let PatchBody { name, description, steps } = call.json()?;
    let steps = steps.map(|steps| steps.into_iter().map(NewStep::from).collect());
    let patch = WorkflowPatch { name, description, steps };
    reply::ok(&Definition::from(call.ask(UpdateWorkflow { workflow, patch }).await?))
}

/// It is gone.
#[derive(Serialize, JsonSchema)]
struct Removed {
    status: &'static str,
    workflow_id: Uuid,
    /// Number of cancelled runs.
    runs_cancelled: usize,
}

async fn remove(call: Call) -> Result<Response, Error> {
    let workflow: WorkflowId = call.id("id")?;
    let runs_cancelled = call.ask(RemoveWorkflow(workflow)).await?;
    reply::ok(&Removed { status: "removed", workflow_id: workflow.0, runs_cancelled })
}
