//! Custom events that clients publish (decisions, Automation).

use agentsvc_components::AgentId;
use agentsvc_systems::event::PublishEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

pub(crate) const ROUTES: &[Route] =
    &[Route::post("/api/events", "Publish a custom event", |call| Box::pin(publish(call)))
        .runs_agents()
        .body::<EventBody>()
        .replies(&[Reply::json::<Published>(200, "published; matching triggers will fire")])];

/// An event.
#[derive(Deserialize, JsonSchema)]
struct EventBody {
    /// Event type: `a` to `z`, digits, `_`, `.` and `-`, at most 128 bytes.
    event_type: String,
    /// Any JSON, at most 16 KiB in compact form.
    #[serde(default)]
    payload: Value,
    /// Agent that the event is about.
    #[serde(default)]
    agent_id: Option<Uuid>,
}

/// The event was published.
#[derive(Serialize, JsonSchema)]
struct Published {
    status: &'static str,
    event_type: String,
}

async fn publish(call: Call) -> Result<Response, Error> {
    let EventBody { event_type, payload, agent_id } = call.json()?;
    let payload = payload.to_string().into();
    let event = PublishEvent { event_type: event_type.clone(), payload, agent: agent_id.map(AgentId), by: None };
    call.ask(event).await?;
    reply::ok(&Published { status: "published", event_type })
}
