//! An outgoing message is stored with its job.

use std::sync::Arc;

use agentsvc_components::channel::conversation::{ChatSession, Conversation, Notice};
use agentsvc_components::channel::message::ChatMessage;
use agentsvc_components::channel::rules::ChannelInstance;
use agentsvc_components::channel::send::{Send, SendCause, SendContent, SendOrder, SendReport, SendState};
use agentsvc_components::channel::{ConversationId, SendId};
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::Job;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::{AgentId, Refusal, SessionId, TurnId};
use bevy_ecs::prelude::World;
use uuid::Uuid;

use super::index::{Conversations, Instances, Messages, Sends};
use super::metrics::count;
use super::send::SEND;
use super::{error_codes, limits};
use crate::agent::holder_of;
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, find, state};
use crate::kernel::id_generator::mint;
use crate::kernel::index;
use crate::kernel::job::{self, JobEvent, JobKind, NewJob};
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::react;
use crate::session::strangers;

/// Messages to chats: in order within a conversation, and never sent again where something may have been written.
pub(super) const JOB: JobKind = JobKind {
    name: SEND,
    repeatable: false,
    tries_max: limits::SEND_TRIES_MAX,
    backoff_ms: limits::SEND_BACKOFF_MS,
    backoff_ms_max: limits::SEND_BACKOFF_MS_MAX,
    deadline_ms: limits::SEND_DEADLINE_MS,
    timeout_ms: limits::SEND_TIMEOUT_MS,
    lane: limits::SENDS_OUT_MAX,
    subject_lane: 1,
    is_shared: false,
    is_ordered: true,
    count_max: limits::SENDS_OPEN_MAX,
    subject_count_max: limits::CONVERSATION_SENDS_OPEN_MAX,
    subject_bytes_max: limits::CONVERSATION_SENDS_BYTES_MAX,
    input_bytes_max: limits::SEND_INPUT_BYTES_MAX,
    bytes_max: limits::SENDS_BYTES_MAX,
    settle,
};

/// A send that has a key has ended; what asked for it reacts.
pub(crate) struct KeyedSendEnded {
    /// Its key.
    pub(crate) key: Uuid,
    /// What is known of it.
    pub(crate) state: SendState,
    /// Why it is so.
    pub(crate) reason: Option<Box<str>>,
}

/// Something is sent to a chat whose instance keeps its messages: what keeps them reacts, in the same step.
pub(crate) struct Kept {
    /// The name of the instance.
    pub(crate) instance: Box<str>,
    /// The chat.
    pub(crate) chat: Box<str>,
    /// The turn that wrote it, else the send.
    pub(crate) name: Box<str>,
    /// What it says.
    pub(crate) text: Box<str>,
}

/// What is to be sent.
#[derive(Default)]
pub(super) struct Outgoing {
    pub(super) cause: SendCause,
    pub(super) agent: Option<AgentId>,
    /// What asked for it knows it by this.
    pub(super) key: Option<Uuid>,
    pub(super) what: SendContent,
    /// Instead of the thread of the conversation.
    pub(super) thread: Option<Box<str>>,
    pub(super) reply_token: Option<Box<str>>,
    pub(super) answers: Option<Box<str>>,
    pub(super) turn: Option<(SessionId, TurnId)>,
}

impl Outgoing {
    /// An answer to a message: goes where it came from.
    pub(super) fn to(message: &ChatMessage, cause: SendCause, text: impl Into<String>) -> Self {
        Self {
            cause,
            what: SendContent { text: text.into(), content: None },
            thread: message.thread.clone(),
            reply_token: message.reply_token.clone(),
            answers: message.message_id.clone(),
            ..Self::default()
        }
    }
}

/// Sends something to a conversation.
///
/// # Errors
/// There is no such conversation, or no room for it (429); then nothing is stored.
pub(super) fn post(world: &mut World, to: ConversationId, out: Outgoing) -> Result<SendId, Refusal> {
    let Some(conversation) = state::<Conversation>(world, to) else {
        return Err(Refusal::not_found("conversation", to));
    };
    let mut what = out.what;
    what.text.truncate(what.text.floor_char_boundary(limits::SEND_TEXT_BYTES_MAX));
    let preview = Box::from(&what.text[..what.text.floor_char_boundary(limits::SEND_PREVIEW_BYTES_MAX)]);
    let order = SendOrder {
        instance: conversation.instance.clone(),
        chat: conversation.chat.clone(),
        thread: out.thread.or_else(|| conversation.thread.clone()),
        name: conversation.title.clone(),
        reply_token: out.reply_token,
        answers: out.answers,
        turn: out.turn,
        what,
    };
    let instance = conversation.instance.clone();
    let input = serde_json::to_string(&order).unwrap_or_default();
    let bytes = u32::try_from(input.len()).unwrap_or(u32::MAX);
    if !world.resource::<Sends>().has_room(&instance, input.len()) {
        return Err(no_room());
    }
    let agent = out.agent.and_then(|agent| index::agent(world, agent).ok());
    let holder = agent.map(|agent| holder_of(world, agent));
    let new = NewJob { subject: to.0, owner: None, holder, input: Arc::from(input) };
    let job = job::add(world, SEND, new).map_err(|_| no_room())?;
    if keeps_messages(world, &instance) {
        let name = order.turn.map_or_else(|| job.to_string(), |(_, turn)| turn.to_string());
        let (chat, text) = (order.chat, order.what.text.into());
        react(world, &Kept { instance: instance.clone(), chat, name: name.into(), text });
    }
    keep(
        world,
        SendId(job.0),
        Send {
            conversation: to,
            instance,
            cause: out.cause,
            agent: out.agent,
            key: out.key,
            preview,
            bytes,
            state: SendState::Queued,
            reason: None,
            message_id: None,
            tries: 0,
            created_at: world.resource::<Now>().0,
            ended_at: None,
        },
    );
    Ok(SendId(job.0))
}

/// Does the instance keep its messages itself?
fn keeps_messages(world: &World, instance: &str) -> bool {
    let id = world.resource::<Instances>().named(instance);
    id.and_then(|id| state::<ChannelInstance>(world, id)).is_some_and(|it| it.rules.keeps_messages)
}

/// Refuses what there is no room for, so that nothing is made for it.
pub(super) fn admit(world: &mut World, to: Option<ConversationId>, what: &SendContent) -> Result<(), Refusal> {
    // A character takes six bytes of JSON at most; ids and names come on top.
    let text = what.text.len().min(limits::SEND_TEXT_BYTES_MAX);
    let bytes = 6 * (text + what.content.as_deref().map_or(0, str::len) + 5 * limits::CHAT_ID_BYTES_MAX);
    let subject = to.map_or_else(Uuid::nil, |to| to.0);
    let bytes = bytes.min(limits::SEND_INPUT_BYTES_MAX);
    let instance = to.and_then(|to| state::<Conversation>(world, to)).map(|of| of.instance.clone());
    if instance.is_some_and(|instance| !world.resource::<Sends>().has_room(&instance, bytes)) {
        return Err(no_room());
    }
    job::admit(world, SEND, subject, bytes).map_err(|_| no_room())
}

fn no_room() -> Refusal {
    busy("too many messages wait to be sent")
}

/// The refusal of what there is no room for.
pub(super) fn busy(text: &str) -> Refusal {
    Refusal { retry_after_secs: Some(5), ..Refusal::of(error_codes::CHANNEL_BUSY, text) }
}

fn keep(world: &mut World, id: SendId, send: Send) {
    let entity = world.spawn((id, send)).id();
    world.mark(entity);
}

/// The same for what must not be lost without a trace: where there is no room for it, it is kept as refused.
pub(super) fn post_or_refuse(world: &mut World, to: ConversationId, out: Outgoing) -> Option<SendId> {
    let (cause, agent, key) = (out.cause, out.agent, out.key);
    let preview = Box::from(&out.what.text[..out.what.text.floor_char_boundary(limits::SEND_PREVIEW_BYTES_MAX)]);
    let refusal = match post(world, to, out) {
        Ok(id) => return Some(id),
        Err(refusal) => refusal,
    };
    let instance = state::<Conversation>(world, to)?.instance.clone();
    let now = world.resource::<Now>().0;
    let id = mint(world, Slot::ROOT);
    keep(
        world,
        id,
        Send {
            conversation: to,
            instance: instance.clone(),
            cause,
            agent,
            key,
            preview,
            bytes: 0,
            state: SendState::Refused,
            reason: Some(cut(&refusal.message)),
            message_id: None,
            tries: 0,
            created_at: now,
            ended_at: Some(now),
        },
    );
    count(world, &instance, |counts| counts.refused += 1);
    trim(world, &instance);
    Some(id)
}

/// Tells a chat something, unless it was told the same a while ago. Gives the text when it is told now.
pub(super) fn notify(
    world: &mut World,
    to: ConversationId,
    notice: Notice,
    span_ms: i64,
    out: Outgoing,
) -> Option<(Option<SendId>, String)> {
    let now = world.resource::<Now>().0;
    let is_told = state::<Conversation>(world, to).is_some_and(|conversation| {
        // One that lasts longer is from before the clock was set back.
        let holds = |until| now < until && until <= now.plus_ms(limits::CHAT_NOTICE_MS);
        conversation.told.iter().any(|(told, until)| *told == notice && holds(*until))
    });
    if is_told {
        return None;
    }
    if let Ok(entity) = find::<Conversation>(world, to) {
        change(world, entity, |conversation: &mut Conversation| {
            conversation.told.retain(|(told, until)| *told != notice && now < *until);
            conversation.told.push((notice, now.plus_ms(span_ms)));
        });
    }
    let text = out.what.text.clone();
    Some((post_or_refuse(world, to, out), text))
}

fn cut(text: &str) -> Box<str> {
    text[..text.floor_char_boundary(limits::SEND_REASON_BYTES_MAX)].into()
}

/// Hears of a try, or of the end of a send.
fn settle(world: &mut World, job: JobId, of: &Job, event: JobEvent) {
    let (id, now) = (SendId(job.0), world.resource::<Now>().0);
    let Some(entity) = world.resource::<Sends>().get(id) else { return };
    let is_kept = world.get::<Send>(entity).is_some_and(|send| keeps_messages(world, &send.instance));
    let report = match event {
        // It was kept when it was added.
        JobEvent::Unknown | JobEvent::Failed(_) if is_kept => {
            SendReport { state: SendState::Sent, ..SendReport::default() }
        }
        JobEvent::Retried(reason) => SendReport { reason: Some(reason.into()), ..SendReport::default() },
        JobEvent::Failed(reason) => {
            SendReport { state: SendState::Refused, reason: Some(reason.into()), ..SendReport::default() }
        }
        JobEvent::Unknown => ended_unknown("the daemon or the adapter ended while it was being sent"),
        JobEvent::Done(text) => match serde_json::from_str::<SendReport>(&text) {
            Ok(report) if report.state != SendState::Queued => report,
            Ok(_) | Err(_) => ended_unknown("how it ended was not reported"),
        },
    };
    let Some(instance) = world.get::<Send>(entity).map(|send| send.instance.clone()) else { return };
    change(world, entity, |send: &mut Send| {
        (send.state, send.tries) = (report.state, of.tries);
        send.reason = report.reason.as_deref().map(cut);
        send.message_id = report.message_id.filter(|id| id.len() <= limits::CHAT_ID_BYTES_MAX);
        send.ended_at = (report.state != SendState::Queued).then_some(now);
    });
    ended(world, id);
    match report.state {
        SendState::Queued => return,
        SendState::Sent | SendState::Acknowledged => count(world, &instance, |counts| counts.sent += 1),
        SendState::Refused => count(world, &instance, |counts| counts.refused += 1),
        SendState::Unknown => count(world, &instance, |counts| counts.unknown += 1),
    }
    trim(world, &instance);
}

/// Tells what asked for a send under a key how it ended.
fn ended(world: &mut World, id: SendId) {
    let Some(Send { key: Some(key), state, reason, .. }) = state::<Send>(world, id).cloned() else { return };
    if state != SendState::Queued {
        react(world, &KeyedSendEnded { key, state, reason });
    }
}

fn ended_unknown(reason: &str) -> SendReport {
    SendReport { state: SendState::Unknown, reason: Some(reason.into()), message_id: None }
}

/// The ended sends of an instance beyond those that are kept go, the ones that ended first.
fn trim(world: &mut World, instance: &str) {
    while let (over, Some(oldest)) = world.resource::<Sends>().ended(instance)
        && over > limits::SENDS_KEPT_MAX
    {
        let Some(entity) = world.resource::<Sends>().get(oldest) else { return };
        world.despawn(entity);
    }
}

/// A conversation goes, with the sends of it that have ended and with the sessions that strangers began in it. False when something
/// of it is open.
pub(super) fn forget(world: &mut World, id: ConversationId) -> bool {
    let sessions = state::<Conversation>(world, id).map(|its| its.sessions.clone()).unwrap_or_default();
    let is_busy = |its: &ChatSession| strangers::is_busy(world, its.session);
    if world.resource::<Messages>().of(id).next().is_some() || sessions.iter().any(is_busy) {
        return false;
    }
    let sends: Vec<SendId> = world.resource::<Sends>().of(id, None).collect();
    let is_open = |id: &SendId| state::<Send>(world, *id).is_some_and(|send| send.state == SendState::Queued);
    if sends.iter().any(is_open) {
        return false;
    }
    for send in sends {
        if let Some(entity) = world.resource::<Sends>().get(send) {
            world.despawn(entity);
        }
    }
    for its in sessions {
        strangers::forget(world, its.session);
    }
    world.resource::<Conversations>().get(id).is_some_and(|entity| world.despawn(entity))
}
