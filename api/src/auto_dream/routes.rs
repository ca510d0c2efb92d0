//! Auto-dream: its status, and what clients can do about it (spec 3).

use agentsvc_components::AgentId;
use agentsvc_components::auto_dream::{DreamEnd, DreamId, DreamRun};
use agentsvc_systems::auto_dream::{AbortDream, DreamView, SetAutoDream, TriggerDream};
use agentsvc_systems::kernel::entities::List;
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::auto_dream::settings::DreamSettings;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::lists;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;

/// Agents of a page when the query does not say.
const LIMIT_DEFAULT: usize = 100;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/auto-dream/status", "Show auto-dream and its agents", |call| Box::pin(status(call)))
        .query::<StatusQuery>()
        .replies(&[Reply::json::<Status>(200, "what is configured, and a page of agents")]),
    Route::post("/api/auto-dream/agents/{id}/trigger", "Consolidate an agent's memory now", |call| {
        Box::pin(trigger(call))
    })
    .runs_agents()
    .cost(10)
    .replies(&[
        Reply::json::<AgentDream>(202, "the run was started"),
        Reply::error(409, "auto-dream is disabled, or a run is under way"),
        Reply::error(429, "too many runs are under way, or the budget is used up"),
    ]),
    Route::post("/api/auto-dream/agents/{id}/abort", "Stop a consolidation run", |call| Box::pin(abort(call)))
        .replies(&[Reply::json::<AgentDream>(200, "the run stops"), Reply::error(409, "no run is under way")]),
    Route::put("/api/auto-dream/agents/{id}/enabled", "Switch auto-dream of an agent on or off", |call| {
        Box::pin(set(call))
    })
    .body::<EnabledBody>()
    .replies(&[Reply::json::<AgentDream>(200, "the agent")]),
];

/// Which agents to show.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct StatusQuery {
    /// Maximum number of agents, 1 to 1000. Default: 100.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

/// What is configured, and a page of the agents that dream, or did, in the order of their ids.
#[derive(Serialize, JsonSchema)]
struct Status {
    /// `[auto_dream] enabled`.
    enabled: bool,
    min_hours: u32,
    min_sessions: u32,
    check_interval_secs: u32,
    agents: Vec<AgentDream>,
    /// Agents in all.
    total: Option<usize>,
    /// Cursor of the next page; null on the last one.
    next_cursor: Option<Uuid>,
}

shape! {
    /// An agent that dreams, or did.
    struct AgentDream from view: DreamView {
        let dream = view.dream;
    } {
        agent_id: Uuid = view.agent.0,
        agent_name: Box<str> = view.name,
        /// Whether the agent dreams by itself.
        auto_dream_enabled: bool = dream.enabled,
        /// When its memory was last consolidated, in milliseconds since 1970; null if never.
        last_consolidated_at_ms: Option<i64> = dream.last_consolidated_at.map(|at| at.0),
        /// When enough hours have passed for the next run, in milliseconds since 1970.
        next_eligible_at_ms: i64 = view.next_eligible_at.0,
        /// Hours since the last consolidation; null if there was none.
        hours_since_last: Option<f64> = view.hours_since_last,
        /// Sessions that have started since then.
        sessions_since_last: u32 = dream.sessions,
        /// Hours between two runs, by its manifest or the configuration.
        effective_min_hours: u32 = view.min_hours,
        /// Sessions between two runs, likewise.
        effective_min_sessions: u32 = view.min_sessions,
        /// The run that is under way; null if there is none.
        progress: Option<Progress> = dream.run.as_ref().map(|run| Progress::of(run, view.calls)),
        /// Whether a run can be aborted.
        can_abort: bool = dream.run.is_some_and(|run| run.ending.is_none()),
        /// The last run; null if there was none.
        last_run: Option<LastRun> = dream.last.map(LastRun::from),
    }
}

/// A run that is under way.
#[derive(Serialize, JsonSchema)]
struct Progress {
    /// `running`, or `stopping` once it was told to stop.
    state: &'static str,
    turn_id: Uuid,
    started_at: Moment,
    /// When it is stopped.
    deadline: Moment,
    /// Whether a client started it.
    manual: bool,
    /// Model calls so far.
    iterations: u32,
    /// Tool calls so far.
    tool_calls: u32,
}

shape! {
    /// A run that has ended.
    struct LastRun from end: DreamEnd {
        turn_id: Uuid = end.turn.0,
        started_at: Moment = Moment(end.started_at),
        ended_at: Moment = Moment(end.ended_at),
        /// `completed`, `failed`, `aborted` or `timed_out`.
        outcome: &'static str = end.outcome.as_str(),
        /// The model's last sentence, or why the run failed.
        text: Box<str> = end.text,
    }
}

impl Progress {
    fn of(run: &DreamRun, calls: Option<(u32, u32)>) -> Self {
        let (iterations, tool_calls) = calls.unwrap_or_default();
        Self {
            state: if run.ending.is_some() { "stopping" } else { "running" },
            turn_id: run.turn.0,
            started_at: Moment(run.started_at),
            deadline: Moment(run.deadline),
            manual: run.is_manual,
            iterations,
            tool_calls,
        }
    }
}

async fn status(call: Call) -> Result<Response, Error> {
    let query: StatusQuery = call.query()?;
    let limit = lists::limit(query.limit)?.unwrap_or(LIMIT_DEFAULT);
    let after: Option<DreamId> = lists::cursor(query.cursor.as_deref())?;
    let settings = call.api.service::<dyn DreamSettings>()?.now();
    let page = call.ask(List::<DreamView> { filter: (), after, limit }).await?;
    reply::ok(&Status {
        enabled: settings.enabled,
        min_hours: settings.min_hours,
        min_sessions: settings.min_sessions,
        check_interval_secs: settings.check_interval_secs,
        agents: page.items.into_iter().map(AgentDream::from).collect(),
        total: page.total,
        next_cursor: page.next.map(|id| id.0),
    })
}

async fn trigger(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    reply::json(StatusCode::ACCEPTED, &AgentDream::from(call.ask(TriggerDream(agent)).await?))
}

async fn abort(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    reply::ok(&AgentDream::from(call.ask(AbortDream(agent)).await?))
}

/// Whether the agent dreams by itself.
#[derive(Deserialize, JsonSchema)]
struct EnabledBody {
    enabled: bool,
}

async fn set(call: Call) -> Result<Response, Error> {
    let (agent, EnabledBody { enabled }) = (call.id("id")?, call.json()?);
    if enabled {
        call.check_may_run()?;
    }
    reply::ok(&AgentDream::from(call.ask(SetAutoDream { agent, enabled }).await?))
}
