//! What channels have to do with people: conversations, sends, and the chats that are let in.

use agentsvc_components::channel::send::SendState;
use agentsvc_systems::channel::limits::{CHAT_ID_BYTES_MAX, PAIRING_SECS_MAX};
use agentsvc_systems::channel::{
    ConversationFilter, ConversationView, OfferPairing, PairChat, PairingOffer, PairingView, SendFilter, SendView,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::routes::known_with_sites;
use super::service::{ChannelError, Channels};
use crate::http::call::Call;
use crate::http::crud::{self, shown};
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;

pub(crate) const ROUTES: &[Route] = &[
    crud::list::<ConversationItem>("/api/channels/{name}/conversations", "List the conversations of a channel"),
    crud::list::<SendItem>("/api/channels/{name}/sends", "List what a channel has sent, newest first"),
    crud::list::<PairingItem>("/api/channels/pairings", "List paired chats and open codes"),
    Route::post("/api/channels/pairings", "Pair a chat, or create a pairing code", |call| Box::pin(pair(call)))
        .body::<PairBody>()
        .replies(&[
            Reply::json::<Paired>(201, "the paired chat, or a new pairing code"),
            Reply::error(404, "there is no such channel"),
            Reply::error(429, "the limit of pairings or of open codes is reached"),
        ]),
    crud::delete::<PairingItem>("/api/channels/pairings/{id}", "Unpair a chat, or revoke a code"),
];

/// The session of a conversation with an agent.
#[derive(Serialize, JsonSchema)]
struct SessionItem {
    agent_id: Uuid,
    session_id: Uuid,
}

shape! {
    /// A conversation of a channel.
    struct ConversationItem from view: ConversationView {
        let its = view.conversation;
    } {
        id: Uuid = view.id.0,
        channel: Box<str> = its.instance,
        /// The chat, as the platform names it.
        conversation: Box<str> = its.chat,
        /// The thread, if threads are conversations of their own.
        thread: Option<Box<str>> = its.thread,
        is_group: bool = its.is_group,
        /// Its name, or that of the person who wrote last.
        title: Box<str> = its.title,
        created_at: Moment = Moment(its.created_at),
        /// When something last happened in it.
        last_at: Moment = Moment(its.last_at),
        /// Whether a message of it was let through once.
        is_known: bool = its.is_known,
        /// When its chat was paired; null if it was not paired.
        paired_at: Option<Moment> = view.paired_at.map(Moment),
        /// The agent that the chat chose with `/agent`.
        agent_id: Option<Uuid> = its.agent.map(|agent| agent.0),
        /// Whether its messages ask for extended thinking (`/think`).
        thinking: bool = its.thinking,
        /// Its sessions, the one that was used last at the end.
        sessions: Vec<SessionItem> = its
            .sessions
            .iter()
            .map(|its| SessionItem { agent_id: its.agent.0, session_id: its.session.0 })
            .collect(),
    }
}

shown!(ConversationItem: ConversationView, "the conversation"; "conversations", |call| Ok(ConversationFilter { instance: Some(known_with_sites(call)?.into()), agent: None }));

shape! {
    /// A message that a channel has sent or is to send.
    struct SendItem from view: SendView {
        let send = view.send;
    } {
        id: Uuid = view.id.0,
        channel: Box<str> = send.instance,
        /// The chat.
        conversation: Box<str> = view.chat,
        conversation_id: Uuid = send.conversation.0,
        /// Why it was sent: `answer`, `command`, `notice`, `tool`, `operator`, `target`, `approval` or `relay`.
        cause: &'static str = send.cause.as_str(),
        agent_id: Option<Uuid> = send.agent.map(|agent| agent.0),
        /// The beginning of its text.
        preview: Box<str> = send.preview,
        /// `queued`, `sent` (the adapter has handled it), `acknowledged` (the platform has it), `refused` or `unknown`. Unknown
        /// ones are not sent again.
        status: &'static str = send.state.as_str(),
        /// Why it is so.
        reason: Option<Box<str>> = send.reason,
        /// Its id at the platform.
        message_id: Option<Box<str>> = send.message_id,
        /// Number of attempts.
        tries: u32 = send.tries,
        created_at: Moment = Moment(send.created_at),
        /// When it ended; null while it is queued.
        ended_at: Option<Moment> = if send.state == SendState::Queued { None } else { send.ended_at.map(Moment) },
        /// When it is tried next; null if it has ended.
        next_try_at: Option<Moment> = view.next_try_at.map(Moment),
    }
}

shown!(SendItem: SendView, "the send"; "sends", |call| Ok(SendFilter::Instance(known_with_sites(call)?.into())));

shape! {
    /// A paired chat, or an open pairing code.
    struct PairingItem from view: PairingView {
        id: Uuid = view.id.0,
        channel: Box<str> = view.instance,
        /// `paired`, or `offered` while the code is open. Codes are not shown.
        state: &'static str = if view.chat.is_some() { "paired" } else { "offered" },
        /// The chat.
        conversation: Option<Box<str>> = view.chat,
        /// Who, for people.
        name: Option<Box<str>> = view.name,
        created_at: Moment = Moment(view.created_at),
        paired_at: Option<Moment> = view.paired_at.map(Moment),
        /// When the code expires.
        expires_at: Option<Moment> = view.expires_at.map(Moment),
    }
}

shown!(PairingItem: PairingView, "the pairing"; "pairings", |_| Ok(None));

/// The chat to pair.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct PairBody {
    /// The channel; required.
    channel: Option<String>,
    /// The chat, as the platform names it. Without it, the reply has a code that one chat can use.
    conversation: Option<String>,
    /// Who, for people. Default: the chat.
    name: Option<String>,
    /// Seconds until the code expires, 1 to 86400. Default: 900.
    valid_secs: Option<u32>,
}

/// The paired chat, or a new pairing code.
#[derive(Serialize, JsonSchema)]
struct Paired {
    id: Uuid,
    channel: String,
    /// `paired`, or `offered` while the code is open.
    state: &'static str,
    /// The paired chat.
    conversation: Option<String>,
    /// The code, shown only once. To pair a chat, send `/start <code>` from it.
    code: Option<Box<str>>,
    /// When the code expires.
    expires_at: Option<Moment>,
}

fn checked(field: &'static str, text: String) -> Result<String, Error> {
    let is_valid = !text.trim().is_empty() && text.len() <= CHAT_ID_BYTES_MAX && !text.chars().any(char::is_control);
    let rule = || Error::bad_field(field, format!("{field} must be one line of 1 to {CHAT_ID_BYTES_MAX} bytes"));
    is_valid.then_some(text).ok_or_else(rule)
}

async fn pair(call: Call) -> Result<Response, Error> {
    let PairBody { channel, conversation, name, valid_secs } = call.json()?;
    let channel = channel.ok_or_else(|| Error::bad_field("channel", "channel is missing"))?;
    let conversation = conversation.map(|chat| checked("conversation", chat)).transpose()?;
    let name = name.map(|name| checked("name", name)).transpose()?;
    if valid_secs.is_some_and(|secs| !(1..=PAIRING_SECS_MAX).contains(&secs)) {
        return Err(Error::bad_field("valid_secs", format!("valid_secs must be 1 to {PAIRING_SECS_MAX}")));
    }
    if call.api.service::<dyn Channels>()?.get(&channel).is_none() {
        return Err(ChannelError::NotFound(channel).into());
    }
    let instance: Box<str> = channel.as_str().into();
    let paired = match conversation {
        None => {
            let PairingOffer { id, code, expires_at } = call.ask(OfferPairing { instance, valid_secs }).await?;
            let (code, expires_at) = (Some(code), Some(Moment(expires_at)));
            Paired { id: id.0, channel, state: "offered", conversation: None, code, expires_at }
        }
        Some(chat) => {
            let name = name.unwrap_or_else(|| chat.clone()).into();
            let view = call.ask(PairChat { instance, chat: chat.as_str().into(), name }).await?;
            Paired { id: view.id.0, channel, state: "paired", conversation: Some(chat), code: None, expires_at: None }
        }
    };
    reply::created(&paired)
}
