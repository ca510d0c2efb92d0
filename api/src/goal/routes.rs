//! Goals (spec 1, Goals; decisions, Automation).

use agentsvc_components::goal::{Goal, GoalStatus};
use agentsvc_components::{AgentId, GoalId};
use agentsvc_systems::goal::{CreateGoal, GoalFilter, GoalPatch, GoalView, ListGoals, UpdateGoal};
use agentsvc_systems::kernel::entities::{Get, Remove};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::goal::templates::{TEMPLATES, Template};
use crate::http::call::Call;
use crate::http::crud::{self, shown};
use crate::http::error::Error;
use crate::http::json::given;
use crate::http::lists::list_schema;
use crate::http::pages::{ListQuery, Shape};
use crate::http::reply::Response;
use crate::http::route::{Reach, Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;
use crate::http::{lists, reply, timestamp};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/goals", "List goals", |call| Box::pin(list(call)))
        .reaching(Reach::Filtered)
        .large()
        .query::<GoalsQuery>()
        .replies(&[Reply::json::<GoalList>(200, "the goals in order of creation")]),
    Route::post("/api/goals", "Set a goal", |call| Box::pin(create(call)))
        .reaching(Reach::Filtered)
        .body::<CreateBody>()
        .replies(&[Reply::json::<GoalItem>(201, "the goal"), Reply::error(429, "the limit of goals is reached")]),
    Route::get("/api/goals/templates", "List goal templates", |call| Box::pin(templates(call)))
        .reaching(Reach::Shared)
        .replies(&[Reply::json::<TemplateList>(200, "titles and descriptions for new goals")]),
    crud::get::<GoalItem>("/api/goals/{id}", "Get a goal").reaching(Reach::Filtered),
    Route::put("/api/goals/{id}", "Update a goal", |call| Box::pin(change(call)))
        .reaching(Reach::Filtered)
        .body::<ChangeBody>()
        .replies(&[
            Reply::json::<GoalItem>(200, "the updated goal"),
            Reply::error(429, "the total text limit of goals is reached"),
        ]),
    Route::delete("/api/goals/{id}", "Delete a goal and its subgoals", |call| Box::pin(remove(call)))
        .reaching(Reach::Filtered)
        .replies(&[Reply::json::<Deleted>(200, "deleted")]),
    Route::get("/api/goals/{id}/children", "List the direct subgoals of a goal", |call| Box::pin(children(call)))
        .reaching(Reach::Filtered)
        .query::<ListQuery>()
        .replies(&[Reply::json::<ChildList>(200, "the goals in order of creation")]),
];

shape! {
    /// A goal.
    struct GoalItem from view: GoalView {
        let goal = view.goal;
    } {
        id: Uuid = view.id.0,
        title: Box<str> = goal.title,
        description: Box<str> = goal.description,
        /// Latest note.
        note: Box<str> = goal.note,
        /// Agent.
        agent_id: Option<Uuid> = goal.agent.map(|id| id.0),
        /// Goal that it is a part of.
        parent_id: Option<Uuid> = goal.parent.map(|id| id.0),
        /// `pending`, `in_progress`, `completed` or `cancelled`.
        status: &'static str = goal.status.as_str(),
        due_at: Option<Moment> = goal.due_at.map(Moment),
        created_at: Moment = Moment(goal.created_at),
        updated_at: Moment = Moment(goal.updated_at),
        /// When it was reached.
        completed_at: Option<Moment> = goal.completed_at.map(Moment),
        /// Whether it has subgoals.
        has_children: bool = view.has_children,
    }
}

shown!(GoalItem: GoalView, "the goal");

list_schema! {
    /// A list of goals.
    GoalList {
        goals: GoalItem,
        /// Goals there are; with `parent_id` or `agent_id` those of it, on the first page only.
        total: Option<u64>
    }
}

list_schema! {
    /// The goals right below a goal.
    ChildList {
        children: GoalItem,
        /// How many there are, on the first page.
        total: Option<u64>
    }
}

/// Filter for goals.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct GoalsQuery {
    /// Only goals of this agent; `none` for goals without an agent.
    agent_id: Option<String>,
    /// Only direct subgoals of this goal; `none` for goals without a parent.
    parent_id: Option<String>,
    /// Only goals with this status.
    status: Option<String>,
    /// Maximum number of items. `next_cursor` of the response leads to the next page.
    limit: Option<usize>,
    /// Cursor of the previous page.
    cursor: Option<String>,
}

async fn list(call: Call) -> Result<Response, Error> {
    let GoalsQuery { agent_id, parent_id, status, limit, cursor } = call.query()?;
    let filter = GoalFilter {
        agent: id_or_none("agent_id", agent_id)?.map(|id| id.map(AgentId)),
        parent: id_or_none("parent_id", parent_id)?.map(|id| id.map(GoalId)),
        status: status_of(status)?,
        ..GoalFilter::default()
    };
    list_of(&call, "goals", filter, ListQuery { limit, cursor }).await
}

async fn children(call: Call) -> Result<Response, Error> {
    let filter = GoalFilter { parent: Some(Some(call.id("id")?)), parent_must_exist: true, ..GoalFilter::default() };
    list_of(&call, "children", filter, call.query()?).await
}

/// Answers with a list of goals under the key `plural`.
async fn list_of(call: &Call, plural: &'static str, filter: GoalFilter, query: ListQuery) -> Result<Response, Error> {
    let command = move |after, limit| ListGoals { filter: filter.clone(), after, limit };
    lists::of_world(call, query, Shape::of(plural), command, GoalItem::from).await
}

/// The value of a filter that takes an id, or `none`.
fn id_or_none(field: &str, text: Option<String>) -> Result<Option<Option<Uuid>>, Error> {
    match text.as_deref() {
        None => Ok(None),
        Some("none") => Ok(Some(None)),
        Some(text) => {
            let wrong = |_| Error::bad_field(field, format!("query parameter '{field}': expected a UUID or 'none'"));
            Uuid::try_parse(text).map(|id| Some(Some(id))).map_err(wrong)
        }
    }
}

fn status_of(word: Option<String>) -> Result<Option<GoalStatus>, Error> {
    let Some(word) = word else { return Ok(None) };
    let wrong = || Error::bad_field("status", "status must be pending, in_progress, completed or cancelled");
    GoalStatus::parse(&word).map(Some).ok_or_else(wrong)
}

/// A goal to create.
#[derive(Deserialize, JsonSchema)]
struct CreateBody {
    /// Title: one line of at most 256 bytes.
    title: String,
    /// Description, at most 8 KiB.
    #[serde(default)]
    description: Option<String>,
    /// Agent that works on it. Default: none.
    #[serde(default)]
    agent_id: Option<Uuid>,
    /// Parent goal.
    #[serde(default)]
    parent_id: Option<Uuid>,
    /// When it is due, such as `2026-12-24T12:00:00Z`.
    #[serde(default)]
    due_at: Option<String>,
    /// `pending` (default), `in_progress`, `completed` or `cancelled`.
    #[serde(default)]
    status: Option<String>,
}

async fn create(call: Call) -> Result<Response, Error> {
    let CreateBody { title, description, agent_id, parent_id, due_at, status } = call.json()?;
    let command = CreateGoal {
        title,
        description: description.unwrap_or_default(),
        agent: agent_id.map(AgentId),
        parent: parent_id.map(GoalId),
        status: status_of(status)?.unwrap_or_default(),
        due_at: due_at.map(|text| timestamp::parse("due_at", &text)).transpose()?,
        ..CreateGoal::default()
    };
    reply::created(&GoalItem::from(call.ask(command).await?))
}

/// Fields to change; omitted fields are unchanged. Null clears `due_at`, `agent_id` and `parent_id`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ChangeBody {
    /// Title: one line of at most 256 bytes.
    title: Option<String>,
    /// Description, at most 8 KiB.
    description: Option<String>,
    /// Progress note, at most 1 KiB.
    note: Option<String>,
    /// `pending`, `in_progress`, `completed` or `cancelled`.
    status: Option<String>,
    /// When it is due, such as `2026-12-24T12:00:00Z`.
    #[serde(deserialize_with = "given")]
    due_at: Option<Option<String>>,
    /// Agent that works on it.
    #[serde(deserialize_with = "given")]
    agent_id: Option<Option<Uuid>>,
    /// Goal that it is a part of.
    #[serde(deserialize_with = "given")]
    parent_id: Option<Option<Uuid>>,
}

async fn change(call: Call) -> Result<Response, Error> {
    let goal: GoalId = call.id("id")?;
    let ChangeBody { title, description, note, status, due_at, agent_id, parent_id } = call.json()?;
    let due_at = due_at.map(|text| text.map(|text| timestamp::parse("due_at", &text)).transpose()).transpose()?;
    let patch = GoalPatch {
        title,
        description,
        note,
        status: status_of(status)?,
        due_at,
        agent: agent_id.map(|id| id.map(AgentId)),
        parent: parent_id.map(|id| id.map(GoalId)),
    };
    let view = if patch == GoalPatch::default() {
        call.ask(Get::<GoalView>(goal)).await?
    } else {
        call.ask(UpdateGoal { goal, patch, only_of: None }).await?
    };
    reply::ok(&GoalItem::from(view))
}

/// The goal and its subgoals were deleted.
#[derive(Serialize, JsonSchema)]
struct Deleted {
    status: &'static str,
    goal_id: Uuid,
    /// Number of deleted goals, including this one.
    deleted: usize,
}

async fn remove(call: Call) -> Result<Response, Error> {
    let goal: GoalId = call.id("id")?;
    let deleted = call.ask(Remove::<Goal>(goal)).await?;
    reply::ok(&Deleted { status: "deleted", goal_id: goal.0, deleted })
}

/// A list of templates.
#[derive(Serialize, JsonSchema)]
struct TemplateList {
    templates: &'static [Template],
    total: usize,
}

async fn templates(_: Call) -> Result<Response, Error> {
    reply::ok(&TemplateList { templates: TEMPLATES, total: TEMPLATES.len() })
}
