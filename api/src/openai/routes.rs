//! The OpenAI-compatible endpoints (spec 1): agents answer chat completions and are listed as models.
//!
//! The conversation in a request is the whole context: it runs in a hidden session of its own, which goes with its
//! turn, and leaves the agent's sessions alone. Who wants a conversation to go on says so, by the header
//! `x-agentsvc-session` (`current` or a session's id) or by the field `user`; then only what is new in the request
//! goes to that session.

use crate::openai::error_codes;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::scope::Scope;
use agentsvc_components::turn::{Origin, TurnRequest};
use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::agent::{AgentFilter, AgentSummary, AgentView, FindAgent, GetAgent, ListAgents, ResolveAgent};
use agentsvc_systems::kernel::page::Page;
use agentsvc_systems::turn::{Conversation, ConversationTarget, PostConversation, ResolveSession, SendConversation};
use hyper::header::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use crate::http::bridge::Bridge;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::pages::Shape;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::{pages, reply, response_headers};
use crate::openai::answer::{Completion, Head};
use crate::openai::image::Stored;
use crate::openai::message::Dialogue;
use crate::openai::request::ChatBody;
use crate::openai::stream::Reader;
use crate::turn::hub::StreamHub;

/// What a completion costs the client's rate budget.
const COST: u32 = 10;
/// The word before an agent's name in the name of its model.
const PREFIX: &str = "agentsvc:";
/// Asks for continuity, and names the session in the answer.
const X_SESSION: HeaderName = HeaderName::from_static("x-agentsvc-session");

/// Bytes of `user`; entries of the memory about a user name it.
const USER_BYTES_MAX: usize = 256;

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/v1/chat/completions", "Create a chat completion (OpenAI-compatible)", |call| Box::pin(chat(call)))
        .scoped(Scope::Chat)
        .cost(COST)
        .body_max(limit::CONVERSATION_BYTES_MAX)
        .body::<ChatBody>()
        .replies(&[
            Reply::json::<Completion<'_>>(200, "the completion, or chunks as server-sent events with `stream`"),
            Reply::error(403, "the session belongs to another agent"),
            Reply::error(409, "the agent is not running or was deleted"),
        ]),
    Route::get("/v1/models", "List agents as models (OpenAI-compatible)", |call| Box::pin(models(call)))
        .replies(&[Reply::json::<ModelList>(200, "one model per agent")]),
    Route::get("/v1/models/{model}", "Get an agent as a model (OpenAI-compatible)", |call| Box::pin(model(call)))
        .replies(&[Reply::json::<Model>(200, "the model")]),
];

/// One agent as a model.
#[derive(Serialize, JsonSchema)]
struct Model {
    /// `agentsvc:<name>`
    id: String,
    /// `model`
    object: &'static str,
    /// Creation time of the agent in Unix seconds.
    created: i64,
    /// `agentsvc`
    owned_by: &'static str,
}

impl Model {
    fn new(name: &str, created_at: agentsvc_components::Timestamp) -> Self {
        let created = created_at.0.div_euclid(1_000);
        Self { id: format!("{PREFIX}{name}"), object: "model", created, owned_by: "agentsvc" }
    }
}

impl From<AgentSummary> for Model {
    fn from(agent: AgentSummary) -> Self {
        Self::new(&agent.name, agent.created_at)
    }
}

/// All of them.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used; the list is streamed")]
struct ModelList {
    data: Vec<Model>,
    /// `list`
    object: &'static str,
}

async fn models(call: Call) -> Result<Response, Error> {
    let after = Map::<String, Value>::from_iter([("object".to_owned(), json!("list"))]);
    let first = models_of(agents_after(&call, None).await?);
    let call = std::sync::Arc::new(call);
    pages::stream(&Shape::Object { key: "data", after }, first, move |cursor| {
        let call = call.clone();
        async move { Ok(models_of(agents_after(&call, Some(cursor)).await?)) }
    })
}

async fn agents_after(call: &Call, after: Option<AgentId>) -> Result<Page<AgentSummary, AgentId>, Error> {
    call.ask(ListAgents { filter: AgentFilter::default(), after, limit: usize::MAX }).await
}

fn models_of(page: Page<AgentSummary, AgentId>) -> Page<Model, AgentId> {
    Page { items: page.items.into_iter().map(Model::from).collect(), next: page.next, total: page.total }
}

async fn model(call: Call) -> Result<Response, Error> {
    let name = call.param("model")?;
    let found = match Uuid::try_parse(&name) {
        Ok(id) => call.ask(GetAgent(AgentId(id))).await,
        Err(_) => call.ask(FindAgent(name.strip_prefix(PREFIX).unwrap_or(&name).into())).await,
    };
    let agent = found.map_err(|error| match error.status().as_u16() {
        404 => Error::not_found(format!("model {name:?} does not exist"))
            .with("field", "model")
            .code(error_codes::MODEL_NOT_FOUND),
        _ => error,
    })?;
    reply::ok(&Model::new(&agent.name, agent.created_at))
}

async fn chat(call: Call) -> Result<Response, Error> {
    let mut body: ChatBody = call.json()?;
    let dialogue = Dialogue::read(std::mem::take(&mut body.messages))?;
    let mut request = body.turn_request(dialogue.system.clone())?;
    request.trace = call.trace.map(|trace| trace.to_string().into());
    let agent = call.ask(resolve(&body.model)).await?;
    request.user = body.user.as_deref().map(str::trim).filter(|user| !user.is_empty()).map(Box::from);
    let is_wrong = |user: &str| user.len() > USER_BYTES_MAX || user.chars().any(char::is_control);
    if request.user.as_deref().is_some_and(is_wrong) {
        let why = format!("user: at most {USER_BYTES_MAX} bytes without control characters");
        return Err(Error::bad_field("user", why));
    }
    let kept = kept_session(&call, &agent, body.user.as_deref()).await?;
    let (venue, mut dialogue) = match kept {
        Some((session, label)) => (ConversationTarget::Kept { session, label }, dialogue.newest()?),
        None => (ConversationTarget::Hidden(SessionId(response_headers::new_id())), dialogue),
    };
    let images = Stored::of(&call.api.service()?, agent.id, &mut dialogue).await?;
    let asked = Asked { agent, venue, dialogue, request, images };
    if body.stream == Some(true) { streamed(&call, asked).await } else { whole(&call, asked).await }
}

/// The agent that a model's name means (spec 1, Model resolution).
fn resolve(model: &str) -> ResolveAgent {
    match model.strip_prefix(PREFIX) {
        Some(name) => ResolveAgent { id: None, name: name.into() },
        None => ResolveAgent { id: Uuid::try_parse(model).ok().map(AgentId), name: model.into() },
    }
}

/// The session that the request wants to go on with, and the label it gets when it is new; `None` when the
/// conversation stands in the request.
async fn kept_session(
    call: &Call,
    agent: &AgentView,
    user: Option<&str>,
) -> Result<Option<(SessionId, Option<Box<str>>)>, Error> {
    if let Some(value) = call.headers().get(X_SESSION) {
        let id = match value.to_str().map(str::trim) {
            Ok("current") => None,
            Ok(text) => Some(Uuid::try_parse(text).map_err(|_| bad_session())?),
            Err(_) => return Err(bad_session()),
        };
        // Asked at once, so that a session of another agent is refused before anything is stored.
        let session = call.ask(ResolveSession { agent: agent.id, session: id.map(SessionId) }).await?;
        return Ok(Some((session, None)));
    }
    let Some(user) = user.filter(|user| !user.trim().is_empty()) else { return Ok(None) };
    Ok(Some((session_of(agent.id, user), Some(label_of(user)))))
}

fn bad_session() -> Error {
    let text = "x-agentsvc-session: expected \"current\" or the id of a session";
    Error::bad_field(X_SESSION.as_str(), text)
}

/// The session of `user` with `agent`: a UUID v8 made of both (RFC 9562, appendix B.2).
fn session_of(agent: AgentId, user: &str) -> SessionId {
    let digest = Sha256::new().chain_update(agent.0.as_bytes()).chain_update(user.as_bytes()).finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    SessionId(Builder::from_custom_bytes(bytes).into_uuid())
}

/// `user:<user>`, as far as a label may say it.
fn label_of(user: &str) -> Box<str> {
    let mut label: String =
        "user:".chars().chain(user.trim().chars().map(|c| if c.is_control() { ' ' } else { c })).collect();
    label.truncate(label.floor_char_boundary(limit::LABEL_BYTES_MAX));
    label.trim_end().into()
}

/// What is asked of whom, and where.
struct Asked {
    agent: AgentView,
    venue: ConversationTarget,
    dialogue: Dialogue,
    request: TurnRequest,
    images: Stored,
}

impl Asked {
    /// The hidden session, if it is one.
    const fn hidden(&self) -> Option<SessionId> {
        match self.venue {
            ConversationTarget::Hidden(session) => Some(session),
            ConversationTarget::Kept { .. } => None,
        }
    }

    const fn session(&self) -> SessionId {
        match self.venue {
            ConversationTarget::Hidden(session) | ConversationTarget::Kept { session, .. } => session,
        }
    }

    /// The command, and what becomes of it when its client leaves.
    fn begin(self, bridge: Bridge) -> (Conversation, Reader) {
        let reader = Reader::new(bridge, self.hidden(), self.images);
        let conversation = Conversation {
            agent: self.agent.id,
            venue: self.venue,
            messages: self.dialogue.messages,
            origin: Origin::OpenAi,
            request: Some(Box::new(self.request)),
        };
        (conversation, reader)
    }
}

async fn whole(call: &Call, asked: Asked) -> Result<Response, Error> {
    let (hidden, name) = (asked.hidden(), asked.agent.name.clone());
    // When the client goes, this future is dropped, and with it the reader.
    let (conversation, mut reader) = asked.begin(call.api.bridge.clone());
    let ended = call.ask(SendConversation(conversation)).await;
    reader.done(ended.is_ok());
    let ended = ended?;
    let head = Head::of(ended.turn, name);
    let completion = Completion::new(&head, &ended.response, &ended.tool_calls, ended.stop, ended.usage);
    Ok(naming(reply::ok(&completion)?, hidden.is_none().then_some(ended.session)))
}

async fn streamed(call: &Call, asked: Asked) -> Result<Response, Error> {
    let (hidden, session, name) = (asked.hidden(), asked.session(), asked.agent.name.clone());
    // First the ears, then the message: nothing of the turn is missed.
    let subscription = call.api.state::<StreamHub>().subscribe(session);
    let (conversation, mut reader) = asked.begin(call.api.bridge.clone());
    let taken = call.ask(PostConversation(conversation)).await.inspect_err(|_| reader.done(false))?;
    reader.taken();
    let response = crate::openai::stream::response(
        &call.api,
        subscription.only(taken.turn),
        taken.turn,
        Head::of(taken.turn, name),
        reader,
    );
    Ok(naming(response, hidden.is_none().then_some(session)))
}

/// Names the session that goes on, so that a client can follow it elsewhere.
fn naming(mut response: Response, session: Option<SessionId>) -> Response {
    let value = session.and_then(|session| HeaderValue::from_str(&session.to_string()).ok());
    if let Some(value) = value {
        response.headers_mut().insert(X_SESSION, value);
    }
    response
}
