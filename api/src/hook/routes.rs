//! The routes of hooks (spec 3, Webhooks).

use agentsvc_components::hook::{HookCall, HookKind, HookState};
use agentsvc_systems::hook::{AwaitHookCall, HookCallView, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error_codes::{HOOK_TIMEOUT, HOOK_TURN_FAILED, HOOK_TURN_STOPPED};
use super::gate;
use super::message::{self, Incoming};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// What a call costs the client's rate budget.
const COST: u32 = 10;

const REUSED: Reply = Reply::error(409, "the idempotency key belongs to another call, or the agent is not running");

const NO_TOKEN: Reply = Reply::error(401, "the token is missing or wrong");
const OFF: Reply = Reply::error(404, "hooks are off, or there is no such agent");
const WAKE: &[Reply] = &[Reply::json::<Woken>(200, "accepted and stored"), REUSED, NO_TOKEN, OFF];
const AGENT: &[Reply] = &[
    Reply::json::<HookAnswer>(200, "the response"),
    REUSED,
    NO_TOKEN,
    Reply::error(403, "the configuration does not let answers be sent to `recipient`"),
    OFF,
    Reply::error(502, "the agent could not answer"),
    Reply::error(504, "the agent did not answer within `timeout_secs`; its turn was stopped"),
];

const fn wake_at(path: &'static str) -> Route {
    Route::post(path, "Wake an agent from outside", |call| Box::pin(wake(call)))
        .public()
        .cost(COST)
        .body_max(limits::HOOK_BODY_BYTES_MAX)
        .body::<WakeBody>()
        .replies(WAKE)
}

const fn agent_at(path: &'static str) -> Route {
    Route::post(path, "Send a message to an agent from outside and wait for the response", |call| Box::pin(agent(call)))
        .public()
        .cost(COST)
        .body_max(limits::HOOK_BODY_BYTES_MAX)
        .body::<HookBody>()
        .replies(AGENT)
}

pub(crate) const ROUTES: &[Route] =
    &[wake_at("/api/hooks/wake"), agent_at("/api/hooks/agent"), wake_at("/hooks/wake"), agent_at("/hooks/agent")];

/// A wake.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct WakeBody {
    /// What the agent is told: at most 4096 bytes, no control characters but line breaks.
    text: Option<String>,
    /// `now` (default) starts a turn; `next_heartbeat` waits until a schedule wakes the agent, at most an hour, and is then told
    /// together with all that waits.
    mode: Option<String>,
    /// Name or id of the agent. Default: the only agent.
    agent: Option<String>,
    /// The same as `agent`.
    agent_id: Option<String>,
}

/// The wake was accepted.
#[derive(Serialize, JsonSchema)]
struct Woken {
    /// `accepted`
    status: &'static str,
    mode: &'static str,
}

/// A message from outside.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct HookBody {
    /// At most 16384 bytes.
    message: Option<String>,
    /// Name or id of the agent. Default: the only agent.
    agent: Option<String>,
    /// The same as `agent`.
    agent_id: Option<String>,
    /// Send the response to `channel`, too.
    deliver: Option<bool>,
    /// Name of a channel.
    channel: Option<String>,
    /// Conversation or person in the channel: one in `[channels] allow_send_to`. Default: the channel's usual one.
    recipient: Option<String>,
    /// Model that answers instead of the agent's own: an id, `<provider>/<id>` or an alias.
    model: Option<String>,
    /// Seconds that the agent can take, 10 to 600. Default: 120.
    timeout_secs: Option<u32>,
}

/// The response of the agent.
#[derive(Serialize, JsonSchema)]
struct HookAnswer {
    /// `completed`
    status: &'static str,
    agent_id: Uuid,
    response: String,
    usage: HookUsage,
    /// Session of the turn: one of its own for all hook messages of an agent.
    session_id: Option<Uuid>,
    turn_id: Option<Uuid>,
}

/// Tokens of the turn.
#[derive(Serialize, JsonSchema)]
struct HookUsage {
    input_tokens: u64,
    output_tokens: u64,
}

/// The agent that a body names: by either key.
fn named(agent: Option<String>, agent_id: Option<String>) -> Option<String> {
    agent.filter(|name| !name.is_empty()).or(agent_id)
}

async fn wake(call: Call) -> Result<Response, Error> {
    let (host, actor) = gate::enter(&call)?;
    let body: WakeBody = call.json()?;
    let text = message::text("text", body.text, limits::HOOK_WAKE_BYTES_MAX)?;
    if text.chars().any(|c| c.is_control() && c != '\n') {
        return Err(Error::bad_field("text", "text must not contain control characters other than line breaks"));
    }
    let mode = match body.mode.as_deref() {
        None | Some("now") => "now",
        Some("next_heartbeat") => "next_heartbeat",
        Some(_) => return Err(Error::bad_field("mode", "mode: expected now or next_heartbeat")),
    };
    let digest = message::digest(&[text.as_bytes(), mode.as_bytes()]);
    let incoming = Incoming {
        kind: HookKind::Wake,
        agent: named(body.agent, body.agent_id),
        text,
        waits: mode == "next_heartbeat",
        timeout_ms: limits::HOOK_OPEN_MS_MAX,
        model: None,
        target: None,
        digest,
    };
    let command = message::command(&call, &host, incoming).await?;
    call.api.bridge.acting_as(actor).ask(command).await?;
    reply::ok(&Woken { status: "accepted", mode })
}

async fn agent(call: Call) -> Result<Response, Error> {
    let (host, actor) = gate::enter(&call)?;
    let body: HookBody = call.json()?;
    let text = message::text("message", body.message, limits::HOOK_MESSAGE_BYTES_MAX)?;
    let (least, most) = (limits::HOOK_TIMEOUT_SECS_MIN, limits::HOOK_TIMEOUT_SECS_MAX);
    let secs = body.timeout_secs.unwrap_or(limits::HOOK_TIMEOUT_SECS);
    if !(least..=most).contains(&secs) {
        return Err(Error::bad_field("timeout_secs", format!("timeout_secs must be {least} to {most}")));
    }
    let model = message::model(&call, body.model)?;
    let target = message::target(&call, body.deliver.unwrap_or(false), body.channel, body.recipient)?;
    let asked = format!("{model:?} {target:?} {secs}");
    let incoming = Incoming {
        kind: HookKind::Agent,
        agent: named(body.agent, body.agent_id),
        digest: message::digest(&[text.as_bytes(), asked.as_bytes()]),
        text,
        waits: false,
        timeout_ms: secs * 1_000,
        model,
        target,
    };
    let command = message::command(&call, &host, incoming).await?;
    let sent = call.api.bridge.acting_as(actor).ask(command).await?;
    // When the caller goes, this future is dropped and nobody waits any more; the turn goes on, and a repetition under the same
    // key gets its answer.
    let ended = if sent.call.state.is_open() { call.ask(AwaitHookCall(sent.id)).await? } else { sent };
    answer(ended)
}

/// What the caller gets of a call that has ended.
fn answer(HookCallView { call, .. }: HookCallView) -> Result<Response, Error> {
    let HookCall { agent, state, result, code, input_tokens, output_tokens, session, turn, .. } = call;
    let text = result.map(String::from).unwrap_or_default();
    let failed = |error: Error| match code {
        Some(cause) => error.with("cause", String::from(cause)),
        None => error,
    };
    match state {
        HookState::Completed => reply::ok(&HookAnswer {
            status: "completed",
            agent_id: agent.0,
            response: text,
            usage: HookUsage { input_tokens, output_tokens },
            session_id: session.map(|session| session.0),
            turn_id: turn.map(|turn| turn.0),
        }),
        HookState::Failed => Err(failed(Error::of(HOOK_TURN_FAILED, text))),
        HookState::Stopped => Err(Error::of(HOOK_TURN_STOPPED, text)),
        HookState::TimedOut => Err(Error::of(HOOK_TIMEOUT, text)),
        HookState::Waiting | HookState::Running => {
            Err(Error::too_many("requests wait for this call", limits::HOOK_CALL_WAITERS_MAX))
        }
    }
}
