//! Workflow definitions (spec 1, Workflows).

use std::collections::BTreeMap;

use agentsvc_components::workflow::{ErrorMode, Step, StepAgent, StepMode, Workflow};
use agentsvc_components::{AgentId, WorkflowId};
use agentsvc_systems::kernel::entities::Remove;
use agentsvc_systems::workflow::{
    CreateWorkflow, ListWorkflows, NewStep, NewWorkflow, RegistryWorkflow, UpdateWorkflow, WorkflowPatch,
    WorkflowSummary, WorkflowView, converted,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::blocking::spawn_blocking;
use crate::http::call::Call;
use crate::http::crud::{self, shown};
use crate::http::error::Error;
use crate::http::pages::{ListQuery, Shape};
use crate::http::reply::Response;
use crate::http::route::{Reach, Reply, Route};
use crate::http::shape::{shape, words};
use crate::http::timestamp::Moment;
use crate::http::{lists, reply};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/workflows", "List workflows", |call| Box::pin(list(call)))
        .reaching(Reach::Filtered)
        .large()
        .query::<ListQuery>()
        .replies(&[Reply::json::<Vec<Item>>(200, "the workflows, oldest first")]),
    Route::post("/api/workflows", "Create a workflow", |call| Box::pin(create(call)))
        .reaching(Reach::Filtered)
        .body::<WorkflowBody>()
        .replies(&[Reply::json::<Created>(201, "created")]),
    Route::post("/api/workflows/import", "Create a workflow from one of a registry", |call| Box::pin(import(call)))
        .body::<ImportBody>()
        .replies(&[Reply::json::<Created>(201, "created")]),
    crud::get::<Definition>("/api/workflows/{id}", "Get a workflow").reaching(Reach::Filtered),
    Route::put("/api/workflows/{id}", "Update a workflow", |call| Box::pin(update(call)))
        .reaching(Reach::Filtered)
        .body::<PatchBody>()
        .replies(&[Reply::json::<Definition>(200, "the updated definition")]),
    Route::delete("/api/workflows/{id}", "Delete a workflow and its runs", |call| Box::pin(remove(call)))
        .reaching(Reach::Filtered)
        .replies(&[Reply::json::<Removed>(200, "deleted; open runs are cancelled")]),
];

words! {
    /// Mode of a step.
    #[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum ModeWord for StepMode {
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
}

words! {
    /// Error mode of a step.
    #[derive(Clone, Copy, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum ErrorWord for ErrorMode {
        /// The run fails.
        Fail,
        /// The run continues without the step.
        Skip,
        /// The step is retried with backoff; then the run fails.
        Retry,
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

shape! {
    /// A stored step.
    struct StepShown from step: &Step {
        let (agent_id, agent_name) = match step.agent.clone() {
            Some(StepAgent::Id(id)) => (Some(id.0), None),
            Some(StepAgent::Name(name)) => (None, Some(name)),
            None => (None, None),
        };
    } {
        name: Box<str> = step.name.clone(),
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_id: Option<Uuid> = agent_id,
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_name: Option<Box<str>> = agent_name,
        prompt: Box<str> = step.prompt.clone(),
        mode: &'static str = step.mode.as_str(),
        timeout_secs: u32 = step.timeout_secs,
        error_mode: &'static str = step.error_mode.as_str(),
        max_retries: u32 = step.max_retries,
        #[serde(skip_serializing_if = "Option::is_none")]
        output_var: Option<Box<str>> = step.output_var.clone(),
        #[serde(skip_serializing_if = "Option::is_none")]
        condition: Option<Box<str>> = step.condition.clone(),
        max_iterations: u32 = step.max_iterations,
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<Box<str>> = step.until.clone(),
    }
}

shape! {
    /// A workflow in a list.
    struct Item from item: WorkflowSummary {
        let WorkflowSummary { id, name, description, steps, created_at } = item;
    } {
        id: Uuid = id.0,
        name: Box<str> = name,
        description: Box<str> = description,
        /// Number of steps.
        steps: usize = steps,
        created_at: Moment = Moment(created_at),
    }
}

async fn list(call: Call) -> Result<Response, Error> {
    let command = |after, limit| ListWorkflows { filter: (), after, limit };
    lists::of_world(&call, call.query()?, Shape::array, command, Item::from).await
}

/// A workflow to create.
#[derive(Deserialize, JsonSchema)]
struct WorkflowBody {
    /// Name of the workflow.
    name: String,
    /// What it does, in a sentence.
    #[serde(default)]
    description: Option<String>,
    /// 1 to 64 steps, such as `[{"name": "find", "agent_name": "scout", "prompt": "{{input}}"}]`.
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
    let WorkflowView { id, workflow } = call.ask(CreateWorkflow(new)).await?;
    reply::created(&Created { workflow_id: id.0, name: workflow.name })
}

/// A workflow of a registry to create here.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ImportBody {
    /// Its TOML, with `name`, `description`, `parameters` and `steps` with `name`, `prompt_template` and `depends_on`. At most 1 MiB.
    workflow_toml: Option<String>,
    /// The agent of steps that name none; this or `agent_name`.
    agent_id: Option<Uuid>,
    /// The same by name.
    agent_name: Option<String>,
    /// Values of its parameters that hold for every run. The others come from the input of a run.
    values: BTreeMap<String, String>,
}

async fn import(call: Call) -> Result<Response, Error> {
    let ImportBody { workflow_toml, agent_id, agent_name, values } = call.json()?;
    let toml = workflow_toml.ok_or_else(|| Error::bad_field("workflow_toml", "workflow_toml is missing"))?;
    let given = RegistryWorkflow { toml, agent_id: agent_id.map(AgentId), agent_name, values };
    let converted = spawn_blocking(move || converted(given)).await;
    let new = converted.map_err(|_| Error::internal("internal error"))??;
    let WorkflowView { id, workflow } = call.ask(CreateWorkflow(new)).await?;
    reply::created(&Created { workflow_id: id.0, name: workflow.name })
}

shape! {
    /// A workflow with its steps.
    struct Definition from view: WorkflowView {
        let Workflow { name, description, steps, created_at, updated_at, .. } = view.workflow;
    } {
        id: Uuid = view.id.0,
        name: Box<str> = name,
        description: Box<str> = description,
        steps: Vec<StepShown> = steps.iter().map(StepShown::from).collect(),
        created_at: Moment = Moment(created_at),
        updated_at: Moment = Moment(updated_at),
    }
}

shown!(Definition: WorkflowView, "the definition");

/// Fields to change; omitted fields are unchanged. `steps` replaces all steps.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct PatchBody {
    /// Name of the workflow.
    name: Option<String>,
    /// What it does, in a sentence.
    description: Option<String>,
    /// 1 to 64 steps, which replace all steps.
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
    let runs_cancelled = call.ask(Remove::<Workflow>(workflow)).await?;
    reply::ok(&Removed { status: "removed", workflow_id: workflow.0, runs_cancelled })
}
