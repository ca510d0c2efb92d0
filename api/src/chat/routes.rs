//! The WebSocket of an agent (spec 1, Events, WebSocket).

use agentsvc_components::kernel::scope::Scope;
use std::sync::Arc;

use agentsvc_components::AgentId;
use agentsvc_systems::agent::{AgentSummary, GetAgent};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::chat::socket::{Conversation, Partner};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::handshake;
use crate::http::principal;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::server::Line;

pub(crate) const ROUTES: &[Route] =
    &[Route::get("/api/agents/{id}/ws", "Chat with an agent over a WebSocket", |call| Box::pin(open(call)))
        .scoped(Scope::Chat)
        .socket()
        .query::<SocketQuery>()
        .replies(&[
            Reply::empty(101, "the connection is upgraded to a WebSocket"),
            Reply::error(403, "this origin is not allowed to open a WebSocket"),
            Reply::error(426, "the request is not a WebSocket upgrade of version 13"),
        ])];

/// Query parameters of the handshake.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "its shape is for the OpenAPI document")]
struct SocketQuery {
    /// API key, for clients that cannot set the header `authorization` or the subprotocols `bearer, <key>`.
    token: Option<String>,
}

async fn open(mut call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let view = call.ask(GetAgent(agent)).await?;
    let answer = handshake::answer(&call.parts)?;
    let extensions = &mut call.parts.extensions;
    let (Some(upgrade), Some(line)) = (extensions.remove::<OnUpgrade>(), extensions.remove::<Line>()) else {
        return Err(handshake::upgrade_required("this connection cannot be upgraded to a WebSocket"));
    };
    let agent = AgentSummary {
        id: view.id,
        name: view.name,
        state: view.state,
        created_at: view.created_at,
        provider: view.provider,
        model: view.model,
        taint: view.taint,
    };
    let (peer, trace, key_changed) = (call.peer, call.trace, call.key_changed);
    let is_limited = call.principal.limited_to().is_some();
    let may_write = call.principal.has(Scope::Write);
    let (activity, permits) = (Arc::clone(&line.activity), call.api.permits_of(&call.principal));
    let partner = Partner { agent, is_limited, may_write, peer, trace, key_changed, activity, permits };
    let api = Arc::clone(&call.api);
    let actor = call.principal.actor();
    let held = async move {
        match upgrade.await {
            Ok(io) => {
                line.activity.upgrade();
                Conversation::hold(api, partner, TokioIo::new(io)).await;
            }
            Err(error) => tracing::debug!(%error, "a WebSocket upgrade failed"),
        }
        // The connection counts as open until here.
        drop(line);
    };
    tokio::spawn(principal::acting(actor, held));
    Ok(answer)
}
