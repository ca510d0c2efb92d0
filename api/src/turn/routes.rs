//! Messages: sent and answered, streamed, watched and stopped (spec 1, Message routing rules, Attach).

use agentsvc_components::kernel::scope::Scope;
use agentsvc_components::turn::{TurnEnd, TurnRequest};
use agentsvc_components::{AgentId, Refusal, SessionId, TurnId};
use agentsvc_systems::channel::is_silent;
use agentsvc_systems::injection::InjectionPolicy;
use agentsvc_systems::session::GetSession;
use agentsvc_systems::turn::{InterruptSession, NewMessage, PostMessage, ResolveSession, SendMessage, StopTurns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::Instrument;
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::permit::Permit;
use crate::http::principal;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::skill::invoke;
use crate::turn::events::ReplyEvent;
use crate::turn::hub::StreamHub;
use crate::turn::repeat;
use crate::turn::sender::Sender;
use crate::turn::stream;
use crate::upload::attachments::{self, Attached, Attachment};

/// What a message costs the client's rate budget.
const COST: u32 = 10;

const EVENTS: Reply =
    Reply::events::<ReplyEvent>("the events chunk, tool_use, tool_result, owner_notice and lagged, then done or error");

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/agents/{id}/message", "Send a message and wait for the response", |call| Box::pin(send(call)))
        .scoped(Scope::Chat)
        .cost(COST)
        .body::<MessageBody>()
        .replies(&[
            Reply::json::<Answer>(200, "the response"),
            Reply::error(403, "the session belongs to another agent"),
            Reply::error(
                409,
                "the agent is not running or was deleted, or the turn in `repeats` is open or no longer the last",
            ),
        ]),
    Route::post("/api/agents/{id}/message/stream", "Send a message and stream the response", |call| {
        Box::pin(stream(call))
    })
    .scoped(Scope::Chat)
    .cost(COST)
    .body::<MessageBody>()
    .replies(&[
        EVENTS,
        Reply::error(403, "the session belongs to another agent"),
        Reply::error(409, "the agent is not running, or the turn in `repeats` is open or no longer the last"),
    ]),
    Route::get("/api/agents/{id}/attach", "Stream the running turn or the next one", |call| Box::pin(attach(call)))
        .query::<AttachQuery>()
        .replies(&[EVENTS, Reply::error(403, "the session belongs to another agent")]),
    Route::post("/api/agents/{id}/stop", "Stop the running turns of an agent", |call| Box::pin(stop(call)))
        .without_room()
        .scoped(Scope::Chat)
        .body::<StopBody>()
        .replies(&[Reply::json::<Stopped>(200, "stopped, or no turn was running")]),
    Route::post(
        "/api/agents/{agent_id}/sessions/{session_id}/interrupt",
        "Interrupt the running turn of a session at its next tool call",
        |call| Box::pin(interrupt(call)),
    )
    .scoped(Scope::Chat)
    .replies(&[
        Reply::empty(204, "the turn will stop at its next tool call"),
        Reply::error(403, "the session belongs to another agent"),
        Reply::error(404, "the agent or session does not exist"),
    ]),
];

/// A message.
#[derive(Deserialize, JsonSchema)]
struct MessageBody {
    /// Text; optional with attachments.
    #[serde(default)]
    message: Option<String>,
    /// Session. Default: the current session. An unknown id creates a session with that id.
    session_id: Option<Uuid>,
    /// A turn that answers the last message of the session. The new turn answers it again: it takes the place of that turn, which
    /// stays in the history and is left out of later prompts.
    #[serde(default)]
    repeats: Option<Uuid>,
    /// Uploads of this agent, at most 32. Only images, PDFs and text are used.
    #[serde(default)]
    attachments: Option<Vec<Attachment>>,
    /// Request extended thinking if the model supports it.
    #[serde(default)]
    thinking: Option<bool>,
    /// For gateways of chat platforms: the chat that the message comes from, such as `whatsapp:<id>`. Such messages are
    /// untrusted content, and each chat has a session of its own unless `session_id` is given.
    #[serde(default)]
    channel_type: Option<String>,
    /// Id of the person on the platform. Requires `channel_type`.
    #[serde(default)]
    sender_id: Option<String>,
    /// Name of the person, which the agent reads in groups. Requires `channel_type`.
    #[serde(default)]
    sender_name: Option<String>,
    /// Whether the chat is a group.
    #[serde(default)]
    is_group: Option<bool>,
    /// Whether the message names the agent. If not, the agent may stay silent in groups.
    #[serde(default)]
    was_mentioned: Option<bool>,
}

/// A message whose form is right.
struct Message {
    agent: AgentId,
    session: Option<SessionId>,
    content: NewMessage,
    /// Does the agent answer it? Not where it comes from a chat whose policy leaves it out.
    is_answered: bool,
    /// Room for the texts of its attachments, until the world has them.
    room: Permit,
}

/// What a turn that this request begins carries of the request's trace; nothing without one.
fn traced(call: &Call) -> Option<Box<TurnRequest>> {
    let trace = call.trace?.to_string().into();
    Some(Box::new(TurnRequest { trace: Some(trace), ..TurnRequest::default() }))
}

impl Message {
    async fn read(call: &Call) -> Result<Self, Error> {
        let agent = call.id("id")?;
        let body: MessageBody = call.json()?;
        let files = body.attachments.unwrap_or_default();
        if body.message.is_none() && files.is_empty() {
            return Err(Error::bad_field("message", "message: missing"));
        }
        let said = body.message.unwrap_or_default();
        attachments::check_length(&said)?;
        let sender = Sender {
            channel_type: body.channel_type,
            sender_id: body.sender_id,
            sender_name: body.sender_name,
            is_group: body.is_group,
            was_mentioned: body.was_mentioned,
        };
        let chat = sender.read()?;
        let is_answered = match &chat {
            Some(chat) => call.ask(chat.question(agent, &said)).await?,
            None => true,
        };
        let (said, found_in_text) = match &chat {
            Some(chat) if !said.is_empty() => {
                chat.shielded(call.asker(), *call.api.services.state::<InjectionPolicy>(), said).await?
            }
            Some(_) => (said, None),
            None => (invoke::message_of(&call.api, agent, &said).await?.unwrap_or(said), None),
        };
        let permits = call.api.permits_of(&call.principal);
        let attached = attachments::blocks(&call.api, &permits, agent, said, &files).await?;
        let Attached { blocks, mut taint, mut found, room } = attached;
        found.extend(found_in_text.map(|found| *found));
        let mut request = traced(call);
        let mut session = body.session_id.map(SessionId);
        if let Some(chat) = chat {
            let own = chat.session(agent);
            if let Some(other) = session.filter(|id| *id != own && id.0.get_version_num() == 8) {
                session = Some(call.ask(GetSession::Of(agent, other)).await?.id);
            }
            session = session.or(Some(own));
            taint = chat.mark(request.get_or_insert_default(), taint);
        }
        let repeats = match body.repeats.map(TurnId) {
            Some(turn) => {
                let (home, repeated) = repeat::repeated(call, agent, session, turn).await?;
                session = Some(home);
                Some(repeated)
            }
            None => None,
        };
        if body.thinking.unwrap_or(false) {
            request.get_or_insert_default().thinking = true;
        }
        let content = NewMessage { blocks, request, taint, found, repeats, ..NewMessage::default() };
        Ok(Self { agent, session, content, is_answered, room })
    }
}

/// The response to a message.
#[derive(Default, Serialize, JsonSchema)]
struct Answer {
    response: String,
    input_tokens: u64,
    output_tokens: u64,
    /// Model calls.
    iterations: u32,
    /// Cost; 0 if the price is unknown.
    cost_usd: f64,
    session_id: Uuid,
    /// The turn; absent if none began.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<Uuid>,
    /// Notes from the agent to its owner; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_notice: Option<String>,
    /// Whether the agent gives no answer: its last line is `NO_REPLY` or `[no reply needed]`, or it does not answer such messages
    /// of chats. Do not show `response` then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    silent: bool,
    /// Whether the turn was stopped; `response` is the partial text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stopped: bool,
    /// Whether the turn was interrupted between tool calls; `response` is the partial text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
}

async fn send(call: Call) -> Result<Response, Error> {
    let Message { agent, session, content, is_answered, room } = Message::read(&call).await?;
    if !is_answered {
        let session_id = call.ask(ResolveSession { agent, session }).await?.0;
        return reply::ok(&Answer { session_id, silent: true, ..Answer::default() });
    }
    // When the client goes, this future is dropped and nobody waits any more; the turn goes on.
    let answer = call.api.bridge.ask_holding(SendMessage { agent, session, message: content }, Some(room)).await?;
    reply::ok(&Answer {
        silent: answer.end == TurnEnd::Done && is_silent(&answer.response),
        response: answer.response,
        input_tokens: answer.usage.input_tokens,
        output_tokens: answer.usage.output_tokens,
        iterations: answer.iterations,
        cost_usd: answer.usage.cost.usd(),
        session_id: answer.session.0,
        turn_id: Some(answer.turn.0),
        owner_notice: (!answer.notices.is_empty()).then(|| answer.notices.join("\n")),
        stopped: answer.end == TurnEnd::Stopped,
        interrupted: answer.end == TurnEnd::Interrupted,
    })
}

async fn stream(call: Call) -> Result<Response, Error> {
    let Message { agent, session, content, is_answered, room } = Message::read(&call).await?;
    if !is_answered {
        call.ask(ResolveSession { agent, session }).await?;
        return Ok(stream::response(&call.api, stream::of_silence()));
    }
    // First the ears, then the message: nothing of the turn is missed. The session that was resolved is named in the
    // message, so that both mean the same one even when another request switches sessions in between.
    let session = call.ask(ResolveSession { agent, session }).await?;
    let mut subscription = call.api.state::<StreamHub>().subscribe(session);
    // When this client goes before the first word, it may come back for it; that includes the time of the post, which
    // therefore goes on by itself until it is known which turn comes of it, or that none does.
    subscription.expect_turn();
    let bridge = call.api.bridge.clone();
    let post = async move {
        let message = PostMessage { agent, session: Some(session), message: content };
        let taken = bridge.ask_holding(message, Some(room)).await?;
        Ok::<_, Refusal>((subscription.only(taken.turn), taken.turn))
    };
    let posted =
        tokio::spawn(principal::acting(principal::actor(), post).in_current_span()).await.map_err(|error| {
            tracing::error!(%error, "sending a message was interrupted");
            Error::internal("the message was interrupted; see the daemon's log for the reason")
        })?;
    let (subscription, turn) = posted?;
    Ok(stream::response(&call.api, stream::of_turn(subscription, turn)))
}

/// Options of the stream.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct AttachQuery {
    /// A session of the agent. Default: the current session.
    session_id: Option<Uuid>,
    /// `start`: replay the running turn from the first subscription on; `now` (default): only new events.
    from: Option<String>,
}

async fn attach(call: Call) -> Result<Response, Error> {
    let agent = call.id("id")?;
    let AttachQuery { session_id, from } = call.query()?;
    let from_start = match from.as_deref() {
        None | Some("now") => false,
        Some("start") => true,
        Some(_) => return Err(Error::bad_field("from", "query parameter 'from': expected now or start")),
    };
    let which = match session_id {
        Some(session) => GetSession::Of(agent, SessionId(session)),
        None => GetSession::Current(agent),
    };
    let (session, hub) = (call.ask(which).await?.id, call.api.state::<StreamHub>());
    let subscription = if from_start { hub.subscribe_from_start(session) } else { hub.subscribe(session) };
    let events = stream::of_next_turn(subscription, session, call.api.bridge.clone());
    Ok(stream::response(&call.api, events))
}

/// Options of the stop.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct StopBody {
    /// Only the turn of this session. Default: all sessions.
    session_id: Option<Uuid>,
}

/// Result of the stop.
#[derive(Serialize, JsonSchema)]
struct Stopped {
    status: &'static str,
    message: String,
}

async fn stop(call: Call) -> Result<Response, Error> {
    let agent = call.id("id")?;
    let session = call.json_or_default::<StopBody>()?.session_id.map(SessionId);
    let running = call.ask(StopTurns { agent, session }).await?;
    let message = match running {
        0 => "no turn was running".to_owned(),
        1 => "the running turn was stopped".to_owned(),
        many => format!("{many} running turns were stopped"),
    };
    reply::ok(&Stopped { status: "stopped", message })
}

async fn interrupt(call: Call) -> Result<Response, Error> {
    let (agent, session) = (call.id("agent_id")?, call.id("session_id")?);
    call.ask(InterruptSession { agent, session }).await?;
    Ok(reply::no_content())
}
