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
use crate::http::route::{Reply, Route};
use crate::http::timestamp::Moment;
use crate::http::{lists, reply};

pub(crate) const ROUTES: &[Route] =
    &[
        Route::get("/api/triggers", "List triggers", |call| Box::pin(list(call)))
            .query::<TriggersQuery>()
            .replies(&[Reply::json::<Vec<TriggerShape>>(200, "triggers in the order of their creation")]),
        Route::post("/api/triggers", "Create a trigger", |call| Box::pin(create(call)))
            .body::<CreateBody>()
            .replies(&[Reply::json::<Created>(201, "created")]),
        Route::get("/api/triggers/{id}", "Read a trigger", |call| Box::pin(show(call))).replies(&[Reply::json::<
            TriggerShape,
        >(
            200,
            "the trigger",
        )]),
        Route::patch("/api/triggers/{id}", "Change fields of a trigger", |call| Box::pin(change(call)))
            .body::<ChangeBody>()
            .replies(&[Reply::json::<TriggerShape>(200, "the trigger as it is now")]),
        Route::delete("/api/triggers/{id}", "Delete a trigger", |call| Box::pin(remove(call)))
            .replies(&[Reply::json::<Removed>(200, "deleted")]),
        Route::get("/api/triggers/{id}/fires", "How the matches of a trigger ended", |call| Box::pin(fires(call)))
            .replies(&[Reply::json::<FiresShape>(200, "counts by outcome, and the last fires")]),
    ];

/// Where fired turns run.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ModeShape {
    /// In the current session.
    Persistent,
    /// In a new session each.
    New,
}

impl From<ModeShape> for SessionMode {
    fn from(mode: ModeShape) -> Self {
        match mode {
            ModeShape::Persistent => Self::Persistent,
            ModeShape::New => Self::New,
        }
    }
}

/// A trigger (spec 1, Trigger).
#[derive(Serialize, JsonSchema)]
struct TriggerShape {
    id: Uuid,
    agent_id: Uuid,
    /// An object whose single key names the kind.
    pattern: Value,
    prompt_template: Box<str>,
    enabled: bool,
    fire_count: u64,
    /// 0 is without bound.
    max_fires: u64,
    created_at: Moment,
    /// Null is the daemon's default.
    cooldown_secs: Option<u32>,
    /// Null is as the manifest says.
    session_mode: Option<ModeShape>,
    target_agent_id: Option<Uuid>,
}

impl From<TriggerView> for TriggerShape {
    fn from(view: TriggerView) -> Self {
        Self {
            id: view.id.0,
            agent_id: view.agent.0,
            pattern: render_pattern(&view.pattern),
            prompt_template: view.prompt_template,
            enabled: view.enabled,
            fire_count: view.fire_count,
            max_fires: view.max_fires,
            created_at: Moment(view.created_at),
            cooldown_secs: view.cooldown_secs,
            session_mode: view.session_mode.map(|mode| match mode {
                SessionMode::Persistent => ModeShape::Persistent,
                SessionMode::New => ModeShape::New,
            }),
            target_agent_id: view.target.map(|target| target.0),
        }
    }
}

/// Which triggers to list.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct TriggersQuery {
    /// Only those of this owner.
    agent_id: Option<Uuid>,
    /// Answer one page of at most so many items, and say in `x-next-cursor` where the next one begins.
    limit: Option<usize>,
    /// Begin here: the cursor of an earlier answer.
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
    /// Who owns it.
    agent_id: Uuid,
    /// An object whose single key names the kind, such as `{"agent_spawned": {"name_pattern": "web-*"}}`.
    pattern: Value,
    /// The message; `{{event}}` stands for the event's compact JSON.
    prompt_template: String,
    /// False: it is made switched off.
    #[serde(default)]
    enabled: Option<bool>,
    /// Fires it has in all; 0, the default, is without bound.
    #[serde(default)]
    max_fires: Option<u64>,
    /// Seconds between two fires; the daemon's default when left out.
    #[serde(default)]
    cooldown_secs: Option<u32>,
    /// As the manifest says when left out.
    #[serde(default)]
    session_mode: Option<ModeShape>,
    /// Who gets the message instead of the owner.
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

/// The fields to change; what is left out stays. Null takes an override away and restores the default.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ChangeBody {
    #[serde(deserialize_with = "sent")]
    prompt_template: Option<String>,
    #[serde(deserialize_with = "sent")]
    enabled: Option<bool>,
    #[serde(deserialize_with = "sent")]
    max_fires: Option<u64>,
    #[serde(deserialize_with = "given")]
    cooldown_secs: Option<Option<u32>>,
    #[serde(deserialize_with = "given")]
    session_mode: Option<Option<ModeShape>>,
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
    reply::ok(&TriggerShape::from(call.ask(UpdateTrigger { trigger, patch }).await?))
}

/// A trigger is gone.
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

/// What a trigger did.
#[derive(Serialize, JsonSchema)]
struct FiresShape {
    trigger_id: Uuid,
    /// Matches by how they ended; every match ends in one of these.
    outcomes: Map<String, Value>,
    /// The time of the event that it last fired for.
    last_fired_at: Option<Moment>,
    /// The time of the event that it last matched.
    last_matched_at: Option<Moment>,
    /// How that match ended.
    last_outcome: Option<&'static str>,
    /// The last fires, the newest first.
    fires: Vec<FireShape>,
    /// Fires in all.
    total: u64,
}

/// One fire.
#[derive(Serialize, JsonSchema)]
struct FireShape {
    /// The time of the event.
    fired_at: Moment,
    /// The kind of the event.
    event: &'static str,
    agent_id: Uuid,
    turn_id: Uuid,
    /// The session that holds the answer.
    session_id: Uuid,
    /// `open`, `done`, `failed`, `stopped` or `interrupted`.
    status: &'static str,
}

impl From<&Fire> for FireShape {
    fn from(fire: &Fire) -> Self {
        Self {
            fired_at: Moment(fire.at),
            event: fire.on.as_str(),
            agent_id: fire.agent.0,
            turn_id: fire.turn.0,
            session_id: fire.session.0,
            status: match fire.end {
                None => "open",
                Some(TurnEnd::Done) => "done",
                Some(TurnEnd::Failed) => "failed",
                Some(TurnEnd::Stopped) => "stopped",
                Some(TurnEnd::Interrupted) => "interrupted",
            },
        }
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
