//! Triggers: events make agents act (spec 1, Triggers).

use agentsvc_components::manifest::SessionMode;
use agentsvc_components::trigger::{Fire, FireLog, FireOutcome};
use agentsvc_components::turn::TurnEnd;
use agentsvc_components::{AgentId, TriggerId};
use agentsvc_systems::event::{parse_pattern, render_pattern};
use agentsvc_systems::trigger::{
    CreateTrigger, DeleteTrigger, GetTrigger, GetTriggerFires, ListTriggers, NewTrigger, TriggerPatch, TriggerView,
    UpdateTrigger,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::json::given;
use crate::http::pages::{ListQuery, Shape};
use crate::http::reply::Response;
use crate::http::route::{Reach, Reply, Route};
use crate::http::shape::{shape, words};
use crate::http::timestamp::Moment;
use crate::http::{lists, reply};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/triggers", "List triggers", |call| Box::pin(list(call)))
        .reaching(Reach::Filtered)
        .large()
        .query::<TriggersQuery>()
        .replies(&[Reply::json::<Vec<TriggerShape>>(200, "the triggers in order of creation")]),
    Route::post("/api/triggers", "Create a trigger", |call| Box::pin(create(call)))
        .runs_agents()
        .reaching(Reach::Filtered)
        .body::<CreateBody>()
        .replies(&[Reply::json::<Created>(201, "created")]),
    Route::get("/api/triggers/{id}", "Get a trigger", |call| Box::pin(show(call)))
        .reaching(Reach::Filtered)
        .replies(&[Reply::json::<TriggerShape>(200, "the trigger")]),
    Route::patch("/api/triggers/{id}", "Update a trigger", |call| Box::pin(change(call)))
        .reaching(Reach::Filtered)
        .body::<ChangeBody>()
        .replies(&[Reply::json::<TriggerShape>(200, "the updated trigger")]),
    Route::delete("/api/triggers/{id}", "Delete a trigger", |call| Box::pin(remove(call)))
        .reaching(Reach::Filtered)
        .replies(&[Reply::json::<Removed>(200, "deleted")]),
    Route::get("/api/triggers/{id}/fires", "Get the outcomes of a trigger", |call| Box::pin(fires(call)))
        .reaching(Reach::Filtered)
        .large()
        .replies(&[Reply::json::<FiresShape>(200, "counts by outcome and the latest fires")]),
];

words! {
    /// Session of triggered turns.
    #[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum ModeShape for SessionMode {
        /// In the current session.
        Persistent,
        /// In a new session each time.
        New,
    }
}

shape! {
    /// A trigger.
    struct TriggerShape from view: TriggerView {
        id: Uuid = view.id.0,
        agent_id: Uuid = view.agent.0,
        /// An object with one key, the event kind.
        pattern: Value = render_pattern(&view.pattern),
        prompt_template: Box<str> = view.prompt_template,
        enabled: bool = view.enabled,
        fire_count: u64 = view.fire_count,
        /// 0 means unlimited.
        max_fires: u64 = view.max_fires,
        created_at: Moment = Moment(view.created_at),
        /// Null means the daemon's default.
        cooldown_secs: Option<u32> = view.cooldown_secs,
        /// Null means as in the manifest.
        session_mode: Option<ModeShape> = view.session_mode.map(ModeShape::from),
        target_agent_id: Option<Uuid> = view.target.map(|target| target.0),
    }
}

/// Filter for triggers.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct TriggersQuery {
    /// Only triggers of this agent.
    agent_id: Option<Uuid>,
    /// Maximum number of items. The response header `x-next-cursor` leads to the next page.
    limit: Option<usize>,
    /// Cursor of the previous page.
    cursor: Option<String>,
}

async fn list(call: Call) -> Result<Response, Error> {
    let TriggersQuery { agent_id, limit, cursor } = call.query()?;
    let agent = agent_id.map(AgentId);
    let command = move |after, limit| ListTriggers { agent, after, limit };
    lists::of_world(&call, ListQuery { limit, cursor }, Shape::array, command, TriggerShape::from).await
}

/// A new trigger.
#[derive(Deserialize, JsonSchema)]
struct CreateBody {
    /// Agent that owns it.
    agent_id: Uuid,
    /// The event kind, such as `turn_failed`, or an object with it as the only key, such as `{"agent_spawned": {"name_pattern": "web-*"}}`.
    pattern: Value,
    /// The message; `{{event}}` is replaced with the event as compact JSON.
    prompt_template: String,
    /// Default: true.
    #[serde(default)]
    enabled: Option<bool>,
    /// Maximum number of fires; 0 (default) means unlimited.
    #[serde(default)]
    max_fires: Option<u64>,
    /// Minimum seconds between two fires. Default: the daemon's default.
    #[serde(default)]
    cooldown_secs: Option<u32>,
    /// Default: as in the manifest.
    #[serde(default)]
    session_mode: Option<ModeShape>,
    /// Agent that receives the message instead of the owner.
    #[serde(default)]
    target_agent_id: Option<Uuid>,
}

/// The new trigger.
#[derive(Serialize, JsonSchema)]
struct Created {
    trigger_id: Uuid,
    agent_id: Uuid,
}

async fn create(call: Call) -> Result<Response, Error> {
    let body: CreateBody = call.json()?;
    let trigger = NewTrigger {
        pattern: parse_pattern(&body.pattern)?,
        prompt_template: body.prompt_template.into(),
        enabled: body.enabled.unwrap_or(true),
        max_fires: body.max_fires.unwrap_or(0),
        cooldown_secs: body.cooldown_secs,
        session_mode: body.session_mode.map(SessionMode::from),
        target: body.target_agent_id.map(AgentId),
    };
    let made = call.ask(CreateTrigger { agent: AgentId(body.agent_id), trigger }).await?;
    reply::created(&Created { trigger_id: made.id.0, agent_id: made.agent.0 })
}

async fn show(call: Call) -> Result<Response, Error> {
    reply::ok(&TriggerShape::from(call.ask(GetTrigger(call.id("id")?)).await?))
}

/// Fields to change; omitted fields are unchanged. Null restores the default.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ChangeBody {
    /// The message; `{{event}}` is replaced with the event as compact JSON.
    #[serde(deserialize_with = "sent")]
    prompt_template: Option<String>,
    /// Whether it fires.
    #[serde(deserialize_with = "sent")]
    enabled: Option<bool>,
    /// Maximum number of fires; 0 means unlimited.
    #[serde(deserialize_with = "sent")]
    max_fires: Option<u64>,
    /// Minimum seconds between two fires.
    #[serde(deserialize_with = "given")]
    cooldown_secs: Option<Option<u32>>,
    /// Session of its turns.
    #[serde(deserialize_with = "given")]
    session_mode: Option<Option<ModeShape>>,
    /// Agent that receives the message instead of the owner.
    #[serde(deserialize_with = "given")]
    target_agent_id: Option<Option<Uuid>>,
}

/// A value that may be left out, but is not null.
fn sent<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

async fn change(call: Call) -> Result<Response, Error> {
    let trigger = call.id("id")?;
    let body: ChangeBody = call.json()?;
    let patch = TriggerPatch {
        prompt_template: body.prompt_template.map(Box::from),
        enabled: body.enabled,
        max_fires: body.max_fires,
        cooldown_secs: body.cooldown_secs,
        session_mode: body.session_mode.map(|mode| mode.map(SessionMode::from)),
        target: body.target_agent_id.map(|target| target.map(AgentId)),
    };
    if patch != (TriggerPatch { enabled: Some(false), ..TriggerPatch::default() }) {
        call.check_may_run()?;
    }
    reply::ok(&TriggerShape::from(call.ask(UpdateTrigger { trigger, patch }).await?))
}

/// The trigger was deleted.
#[derive(Serialize, JsonSchema)]
struct Removed {
    status: &'static str,
    trigger_id: Uuid,
}

async fn remove(call: Call) -> Result<Response, Error> {
    let trigger: TriggerId = call.id("id")?;
    call.ask(DeleteTrigger(trigger)).await?;
    reply::ok(&Removed { status: "removed", trigger_id: trigger.0 })
}

/// History of a trigger.
#[derive(Serialize, JsonSchema)]
struct FiresShape {
    trigger_id: Uuid,
    /// Matches by outcome.
    outcomes: Map<String, Value>,
    /// Time of the event that last fired it.
    last_fired_at: Option<Moment>,
    /// Time of the event that it last matched.
    last_matched_at: Option<Moment>,
    /// Outcome of the last match.
    last_outcome: Option<&'static str>,
    /// Latest fires, newest first.
    fires: Vec<FireShape>,
    /// Total number of fires.
    total: u64,
}

shape! {
    /// A fire.
    struct FireShape from fire: &Fire {
        /// The time of the event.
        fired_at: Moment = Moment(fire.at),
        /// The kind of the event.
        event: &'static str = fire.on.as_str(),
        agent_id: Uuid = fire.agent.0,
        turn_id: Uuid = fire.turn.0,
        /// Session of the turn.
        session_id: Uuid = fire.session.0,
        /// `open`, `done`, `failed`, `stopped` or `interrupted`.
        status: &'static str = match fire.end {
            None => "open",
            Some(TurnEnd::Done) => "done",
            Some(TurnEnd::Failed) => "failed",
            Some(TurnEnd::Stopped) => "stopped",
            Some(TurnEnd::Interrupted) => "interrupted",
        },
    }
}

async fn fires(call: Call) -> Result<Response, Error> {
    let found = call.ask(GetTriggerFires(call.id("id")?)).await?;
    let total = found.log.begun();
    let FireLog { outcomes, last_fired_at, last_matched_at, last_outcome, fires, .. } = found.log;
    let counts = FireOutcome::ALL.into_iter();
    reply::ok(&FiresShape {
        trigger_id: found.id.0,
        outcomes: counts.map(|outcome| (outcome.as_str().to_owned(), outcomes.of(outcome).into())).collect(),
        last_fired_at: last_fired_at.map(Moment),
        last_matched_at: last_matched_at.map(Moment),
        last_outcome: last_outcome.map(FireOutcome::as_str),
        fires: fires.iter().rev().map(FireShape::from).collect(),
        total,
    })
}
