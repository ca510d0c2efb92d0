//! The routes of external agents (spec 3, A2A).

use std::collections::BTreeMap;
use std::sync::Arc;

use agentsvc_components::a2a::outbound::{A2aAgent, A2aSentId};
use agentsvc_systems::a2a::outbound::{
    A2aAgentView, A2aSentView, AwaitA2aSent, FindA2aAgent, RegisterA2aAgent, SendToA2aAgent,
};
use agentsvc_systems::kernel::entities::{Get, Remove};
use hyper::StatusCode;
use tokio::time::{Duration, timeout};

use super::host::{A2aOutbound, DiscoverFailure, Discovered, GivenHeader};
use super::shape::{DiscoverBody, ExternalAgentItem, SendBody, SentTaskItem};
use crate::a2a::error_codes::{A2A_AGENT_UNREACHABLE, A2A_CARD_UNUSABLE};
use crate::a2a::{gate, limits};
use crate::http::call::Call;
use crate::http::crud;
use crate::http::error::Error;
use crate::http::error_codes::VAULT_UNAVAILABLE;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// What a request to an external agent costs the client's rate budget.
const COST: u32 = 10;

const AGENT: Reply = Reply::json::<ExternalAgentItem>(200, "the external agent");
const TASK: Reply = Reply::json::<SentTaskItem>(200, "the task");

pub(crate) const ROUTES: &[Route] = &[
    crud::list::<ExternalAgentItem>("/api/a2a/agents", "List external agents"),
    Route::get("/api/a2a/agents/{id}", "Get an external agent by its id, name or URL", |call| Box::pin(get(call)))
        .replies(&[AGENT]),
    Route::delete("/api/a2a/agents/{id}", "Remove an external agent; its open tasks end", |call| {
        Box::pin(remove(call))
    })
    .replies(&[Reply::empty(204, "removed")]),
    Route::post("/api/a2a/agents/{id}/approve", "Approve an external agent, which discovering it has done", |call| {
        Box::pin(get(call))
    })
    .replies(&[AGENT]),
    Route::post("/api/a2a/discover", "Discover an external agent, or read its card again", |call| {
        Box::pin(discover(call))
    })
    .cost(COST)
    .body::<DiscoverBody>()
    .replies(&[
        Reply::json::<ExternalAgentItem>(201, "the external agent, which was not known"),
        Reply::json::<ExternalAgentItem>(200, "the external agent, which was known"),
        Reply::error(409, "another external agent has the name"),
        Reply::error(502, "the URL did not respond, or has no agent card that can be used"),
    ]),
    Route::post("/api/a2a/send", "Send a message to an external agent", |call| Box::pin(send(call)))
        .cost(COST)
        .body::<SendBody>()
        .replies(&[
            Reply::json::<SentTaskItem>(200, "the task: ended, or with `blocking: false` or after 10 minutes as it is"),
            Reply::error(404, "no external agent is known by that id, name or URL"),
            Reply::error(409, "the task to continue is open"),
        ]),
    crud::list::<SentTaskItem>("/api/a2a/tasks", "List the tasks that were sent to external agents"),
    crud::get::<SentTaskItem>("/api/a2a/tasks/{id}", "Get a task that was sent to an external agent"),
    Route::get("/api/a2a/tasks/{id}/status", "Get a task that was sent to an external agent", |call| {
        Box::pin(task(call))
    })
    .large()
    .replies(&[TASK]),
];

async fn find(call: &Call, text: &str) -> Result<A2aAgentView, Error> {
    call.ask(FindA2aAgent(text.to_owned())).await
}

async fn get(call: Call) -> Result<Response, Error> {
    let view = find(&call, &call.param("id")?).await?;
    reply::ok(&ExternalAgentItem::from(view))
}

async fn remove(call: Call) -> Result<Response, Error> {
    let view = find(&call, &call.param("id")?).await?;
    call.ask(Remove::<A2aAgent>(view.id)).await?;
    Ok(reply::no_content())
}

/// The one header of a body.
fn header(headers: BTreeMap<String, String>) -> Result<Option<GivenHeader>, Error> {
    if headers.len() > 1 {
        return Err(Error::bad_field("headers", "headers must have at most one item"));
    }
    let Some((name, value)) = headers.into_iter().next() else { return Ok(None) };
    let most = limits::A2A_HEADER_BYTES_MAX;
    if name.len() + value.len() > most {
        return Err(Error::bad_field("headers", format!("the header is longer than {most} bytes")));
    }
    Ok(Some(GivenHeader { name, value }))
}

async fn discover(call: Call) -> Result<Response, Error> {
    let host = call.api.service::<dyn A2aOutbound>()?;
    let body: DiscoverBody = call.json()?;
    if body.url.is_empty() {
        return Err(Error::bad_field("url", "url is missing"));
    }
    let url = host.spelled(&body.url).map_err(|why| Error::bad_field("url", format!("url: {why}")))?;
    let is_removed = body.headers.as_ref().is_some_and(Option::is_none);
    let given = body.headers.flatten().map_or(Ok(None), header)?;
    let known = match find(&call, &url).await {
        Ok(view) => Some(view).filter(|view| *view.agent.url == *url),
        Err(error) if error.status() == StatusCode::NOT_FOUND => None,
        Err(error) => return Err(error),
    };
    let known = known.and_then(|view| view.agent.secret).filter(|_| !is_removed);
    let Discovered { card, secret } =
        Arc::clone(&host).discover(url.clone(), given, known).await.map_err(|failure| match failure {
            DiscoverFailure::Url(why) => Error::bad_field("url", format!("url: {why}")),
            DiscoverFailure::Header(why) => Error::bad_field("headers", why),
            DiscoverFailure::Unreachable(why) => Error::of(A2A_AGENT_UNREACHABLE, why),
            DiscoverFailure::Card(why) => Error::of(A2A_CARD_UNUSABLE, why),
            DiscoverFailure::Vault(why) => Error::of(VAULT_UNAVAILABLE, why),
        })?;
    let secret = if is_removed { Some(None) } else { secret.map(Some) };
    let found = call.ask(RegisterA2aAgent { url, name: body.name, card, secret }).await?;
    let status = if found.is_new { StatusCode::CREATED } else { StatusCode::OK };
    reply::json(status, &ExternalAgentItem::from(found.view))
}

async fn send(call: Call) -> Result<Response, Error> {
    let host = call.api.service::<dyn A2aOutbound>()?;
    let body: SendBody = call.json()?;
    let (field, named) = match (&body.agent_id, &body.url) {
        (Some(id), _) => ("agent_id", id.clone()),
        (None, Some(url)) => ("url", host.spelled(url).map_err(|why| Error::bad_field("url", format!("url: {why}")))?),
        (None, None) => return Err(Error::bad_field("agent_id", "agent_id is missing")),
    };
    let view = find(&call, &named).await.map_err(|error| error.with("field", field))?;
    let waiting = if body.blocking.unwrap_or(true) { Some(gate::enter(&call)?) } else { None };
    let sent = call
        .ask(SendToA2aAgent {
            to: view.id,
            from: None,
            message: body.message,
            context: body.context_id.or(body.session_id),
            continues: body.task_id.map(A2aSentId),
            key: String::new(),
            per_minute: host.per_minute(),
        })
        .await?;
    let view = match waiting {
        Some(waiting) => ended(&call, sent, waiting).await?,
        None => sent,
    };
    reply::ok(&SentTaskItem::from(view))
}

/// The task when it has ended; as it is after a while.
async fn ended(call: &Call, view: A2aSentView, waiting: gate::Waiting) -> Result<A2aSentView, Error> {
    let most = Duration::from_secs(limits::A2A_WAIT_SECS_MAX);
    let (id, ended) = (view.id, timeout(most, call.ask(AwaitA2aSent(view.id))).await);
    drop(waiting);
    match ended {
        Ok(ended) => ended,
        Err(_) => call.ask(Get::<A2aSentView>(id)).await,
    }
}

async fn task(call: Call) -> Result<Response, Error> {
    let view = crud::view::<SentTaskItem>(&call, call.id("id")?).await?;
    reply::ok(&SentTaskItem::from(view))
}
