//! One conversation over one WebSocket: what the client says becomes messages and commands, what its turns say goes
//! back. One task, which waits for nothing but the next thing that happens.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use agentsvc_components::kernel::limit;
use agentsvc_components::turn::{Origin, TurnRequest};
use agentsvc_components::{AgentId, SessionId, TurnId};
use agentsvc_systems::agent::AgentSummary;
use agentsvc_systems::turn::{NewMessage, PostMessage, ResolveSession};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{MissedTickBehavior, interval};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Utf8Bytes};
use tracing::Instrument;

use super::client::{ClientMessage, Message};
use super::turns::Turns;
use super::wire::ServerMessage;
use super::{client, wire};
use crate::chat::agent_feed::Seat;
use crate::chat::command::{self, Chat};
use crate::http::api::Api;
use crate::http::connection::Activity;
use crate::http::error::Error;
use crate::http::permit::{Permit, Permits};
use crate::http::rate::Share;
use crate::http::shutdown::Shutdown;
use crate::http::socket::{End, LOOK_PERIOD, Pipe};
use crate::http::trace::{TraceContext, request_span};
use crate::http::{permit, response_headers};
use crate::skill::invoke;
use crate::turn::hub::{StreamHub, Subscription};
use crate::upload::attachments::{self, Attached};

/// What a message costs the client's rate budget, as over REST.
const MESSAGE_COST: u32 = 10;
/// What a command costs, as a change over REST.
const COMMAND_COST: u32 = 2;
/// What anything else costs.
const OTHER_COST: u32 = 1;

/// What the spans of messages have as their route.
const ROUTE: &str = "/api/agents/{id}/ws";

/// Who talks to whom.
pub(crate) struct Partner {
    /// The agent as it was when the client came.
    pub(crate) agent: AgentSummary,
    /// The client knows of agents of its user only.
    pub(crate) is_limited: bool,
    /// The client may change the agent.
    pub(crate) may_write: bool,
    /// The client's address, whose rate budget is used.
    pub(crate) peer: IpAddr,
    /// The trace of the handshake.
    pub(crate) trace: Option<TraceContext>,
    /// Triggered when the key that let the client in is no longer in force.
    pub(crate) key_changed: Shutdown,
    /// What the connection does.
    pub(crate) activity: Arc<Activity>,
    /// Room for the client's messages.
    pub(crate) permits: Arc<Permits>,
}

/// One client's conversation with an agent.
pub(crate) struct Conversation<S> {
    api: Arc<Api>,
    agent: AgentId,
    peer: IpAddr,
    /// Messages that were refused in a row because the client sends too many.
    refused: u32,
    trace: Option<TraceContext>,
    /// Room for the texts of attachments.
    permits: Arc<Permits>,
    pipe: Pipe<S>,
    turns: Turns,
    /// What the client said and was not begun with yet.
    inputs: VecDeque<(Message, Permit)>,
    /// What is being done about the input before those.
    work: Option<BoxFuture<'static, Result<Done, Error>>>,
    /// A command that may take long; what else the client says does not wait for it.
    aside: Option<BoxFuture<'static, Result<Done, Error>>>,
    /// A message is on its way into the world: its turn could speak before it is known as ours, so that no turn is
    /// listened to for that moment.
    posting: Arc<AtomicBool>,
    /// The client's messages ask for extended thinking.
    thinking: bool,
    /// The client may change the agent.
    may_write: bool,
}

/// What became of an input.
enum Done {
    /// A message was taken.
    Posted(TurnId, SessionId, Subscription),
    /// A command was carried out.
    Command(command::Outcome),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Conversation<S> {
    /// Holds the conversation over `io` until one side ends it.
    pub(crate) async fn hold(api: Arc<Api>, partner: Partner, io: S) {
        let seat = Seat::take(&api, &partner.agent).limited(partner.is_limited);
        let message_time_max = api.settings.limits.body_time_max;
        let mut conversation = Self {
            agent: partner.agent.id,
            peer: partner.peer,
            refused: 0,
            trace: partner.trace,
            permits: Arc::clone(&partner.permits),
            pipe: Pipe::new(io, partner.activity, partner.permits, message_time_max).await,
            turns: Turns::default(),
            inputs: VecDeque::new(),
            work: None,
            aside: None,
            posting: Arc::default(),
            thinking: false,
            may_write: partner.may_write,
            api,
        };
        conversation.tell(&ServerMessage::Connected { agent_id: conversation.agent.0 });
        let end = conversation.run(seat, &partner.key_changed).await;
        conversation.pipe.finish(end).await;
    }

    async fn run(&mut self, mut seat: Seat, key_changed: &Shutdown) -> End {
        let mut stop = pin!(self.api.shutdown.wait());
        let mut key_changed = pin!(key_changed.wait());
        let mut looks = interval(LOOK_PERIOD);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return self.farewell(),
                () = &mut key_changed => return End::Close(CloseCode::Policy, "the API key has changed"),
                now = looks.tick() => if self.pipe.is_dead(now, self.api.settings.limits.stall_time_max) {
                    self.api.metrics.unread.sockets.fetch_add(1, Ordering::Relaxed);
                    return End::Gone;
                },
                agents = seat.next() => self.pipe.outbox.set_agents(agents),
                moved = std::future::poll_fn(|cx| self.poll(cx)) => if let Err(end) = moved {
                    return end;
                },
            }
        }
    }

    /// Does one thing that can be done now. The order matters: what was asked is settled before its turn is listened
    /// to, and nothing new is read while too much waits.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        if let Poll::Ready(Err(end)) = self.pipe.poll_send(cx) {
            return Poll::Ready(Err(end));
        }
        if let Some(work) = &mut self.work {
            if let Poll::Ready(done) = work.poll_unpin(cx) {
                self.work = None;
                self.posting.store(false, Ordering::Relaxed);
                self.settle(done);
                return Poll::Ready(Ok(()));
            }
        } else if !self.pipe.outbox.is_full()
            && let Some((input, permit)) = self.inputs.pop_front()
        {
            let is_slow = command::is_slow(&input.content);
            if is_slow && self.aside.is_some() {
                self.tell_error("an earlier command is still running; wait for its response");
            } else if is_slow {
                self.aside = Some(Box::pin(permit::hold(Some(permit), self.begin(input))));
            } else {
                self.work = Some(Box::pin(permit::hold(Some(permit), self.begin(input))));
            }
            return Poll::Ready(Ok(()));
        }
        if let Some(Poll::Ready(done)) = self.aside.as_mut().map(|aside| aside.poll_unpin(cx)) {
            self.aside = None;
            self.settle(done);
            return Poll::Ready(Ok(()));
        }
        if !self.posting.load(Ordering::Relaxed) && self.turns.poll(cx, &mut self.pipe.outbox).is_ready() {
            return Poll::Ready(Ok(()));
        }
        if self.inputs.len() >= limit::SOCKET_INPUTS_MAX || self.pipe.outbox.is_full() {
            self.pipe.pause();
            return Poll::Pending;
        }
        self.pipe.poll_read(cx).map(|read| read.and_then(|(message, permit)| self.hear(message, permit)))
    }

    fn tell(&mut self, message: &ServerMessage<'_>) {
        self.pipe.outbox.push(message.text());
    }

    fn tell_error(&mut self, content: &str) {
        self.tell(&ServerMessage::Error { content });
    }

    /// Takes in one message of the client.
    fn hear(&mut self, message: tungstenite::Message, permit: Permit) -> Result<(), End> {
        match message {
            tungstenite::Message::Text(text) => {
                self.hear_text(&text, permit);
                if self.refused >= limit::REFUSALS_MAX {
                    return Err(End::Close(CloseCode::Policy, "too many messages over the rate limit"));
                }
            }
            tungstenite::Message::Binary(_) => {
                return Err(End::Close(CloseCode::Unsupported, "binary messages are not supported; send JSON text"));
            }
            _ => {}
        }
        Ok(())
    }

    fn hear_text(&mut self, text: &Utf8Bytes, permit: Permit) {
        let read = client::read(text);
        let cost = match &read {
            Ok(ClientMessage::Message(message)) if command::is_command(&message.content) => COMMAND_COST,
            Ok(ClientMessage::Message(_)) => MESSAGE_COST,
            Ok(ClientMessage::Ping) | Err(_) => OTHER_COST,
        };
        if let Err(refused) = self.api.access.policy().check_rate(self.peer, Share::Keyed, cost) {
            self.refused += 1;
            return self.tell_error(&sentence(&refused));
        }
        self.refused = 0;
        match read {
            Ok(ClientMessage::Message(message)) => self.inputs.push_back((message, permit)),
            Ok(ClientMessage::Ping) => self.tell(&ServerMessage::Pong),
            Err(error) => self.tell_error(&error),
        }
    }

    /// Where a command is typed.
    fn chat(&self, api: Arc<Api>) -> Chat {
        let (agent, sessions) = (self.agent, self.turns.sessions());
        Chat { api, agent, sessions, thinking: self.thinking, may_write: self.may_write }
    }

    /// Begins to do what the client said.
    fn begin(&mut self, input: Message) -> BoxFuture<'static, Result<Done, Error>> {
        let (api, agent, permits) = (Arc::clone(&self.api), self.agent, Arc::clone(&self.permits));
        let id = response_headers::new_id();
        let trace = input.trace.or_else(|| self.trace.map(|trace| trace.within(id.as_u64_pair().1)));
        let span = request_span("WS", ROUTE, trace.map_or(id, |trace| trace.request_id()), trace.as_ref());
        if command::is_known(&input.content) && command::is_command(&input.content) {
            let chat = self.chat(api);
            let run = async move { Ok(Done::Command(command::run(chat, &input.content).await?)) };
            return Box::pin(run.instrument(span));
        }
        if self.turns.len() >= limit::SOCKET_TURNS_MAX {
            let waiting = self.turns.len();
            let text = format!(
                "{waiting} messages of this connection are waiting for a response; wait for some of \
                them"
            );
            return Box::pin(async { Err(Error::bad_request(text)) });
        }
        let mut request = traced(trace.as_ref());
        if self.thinking {
            request.get_or_insert_default().thinking = true;
        }
        let chat = self.chat(Arc::clone(&api));
        let posting = Arc::clone(&self.posting);
        let begin = async move {
            if let Some(content) = invoke::message_of(&api, agent, &input.content).await? {
                return post((api, permits), agent, Message { content, ..input }, request, posting).await;
            }
            if command::is_command(&input.content) {
                return Ok(Done::Command(command::run(chat, &input.content).await?));
            }
            post((api, permits), agent, input, request, posting).await
        };
        Box::pin(begin.instrument(span))
    }

    fn settle(&mut self, done: Result<Done, Error>) {
        match done {
            Ok(Done::Posted(turn, session, subscription)) => {
                self.turns.begin(turn, session, subscription, &mut self.pipe.outbox);
            }
            Ok(Done::Command(outcome)) => {
                self.thinking = outcome.thinking.unwrap_or(self.thinking);
                self.pipe.outbox.push(wire::command_response(&outcome.text));
            }
            Err(error) => self.tell_error(&sentence(&error)),
        }
    }

    /// The daemon stops.
    fn farewell(&mut self) -> End {
        if self.turns.len() > 0 {
            self.tell_error("the daemon is shutting down; the turn resumes at the next start");
        }
        End::Close(CloseCode::Away, "the daemon is shutting down")
    }
}

/// What a turn carries of the trace of its message; nothing without one.
fn traced(trace: Option<&TraceContext>) -> Option<Box<TurnRequest>> {
    let trace = trace?.to_string().into();
    Some(Box::new(TurnRequest { trace: Some(trace), ..TurnRequest::default() }))
}

/// Sends a message to the agent.
async fn post(
    (api, permits): (Arc<Api>, Arc<Permits>),
    agent: AgentId,
    said: Message,
    request: Option<Box<TurnRequest>>,
    posting: Arc<AtomicBool>,
) -> Result<Done, Error> {
    let attached = attachments::blocks(&api, &permits, agent, said.content, &said.attachments).await?;
    let Attached { blocks, taint, found, room } = attached;
    // First the ears, then the message, as when a message is streamed over REST.
    let session = api.bridge.ask(ResolveSession { agent, session: said.session }).await?;
    let subscription = api.state::<StreamHub>().subscribe(session);
    let message = NewMessage { blocks, origin: Origin::WebSocket, request, taint, found, repeats: None };
    posting.store(true, Ordering::Relaxed);
    let message = PostMessage { agent, session: Some(session), message };
    let taken = api.bridge.ask_holding(message, Some(room)).await?;
    Ok(Done::Posted(taken.turn, session, subscription))
}

/// What an error is in a message, which has no place for headers.
fn sentence(error: &Error) -> String {
    match error.retry_after_secs() {
        Some(secs) => format!("{}; try again in {secs} s", error.message()),
        None => error.message().to_owned(),
    }
}
