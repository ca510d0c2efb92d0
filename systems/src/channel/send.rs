//! Messages go out.

use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::channel::message::{ChatMessage, ChatMessageState};
use agentsvc_components::channel::rules::InstanceRules;
use agentsvc_components::channel::send::{SendCause, SendContent};
use agentsvc_components::channel::{ConversationId, SendId};
use agentsvc_components::turn::Turn;
use agentsvc_components::{AgentId, Refusal, TurnId};
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::index::{Conversations, Messages};
use super::list::SendView;
use super::post::{Outgoing, admit, busy, post};
use super::receive::no_instance;
use super::talk::{Place, enter};
use super::{audit_kinds, error_codes, limits, rules};
use crate::agent::limit_of;
use crate::audit::Audit;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, state};
use crate::kernel::index;

/// The name of the kind of jobs. Its input is a [`SendOrder`](agentsvc_components::channel::send::SendOrder) as JSON; what a
/// performer brings when it is done, a [`SendReport`](agentsvc_components::channel::send::SendReport). `Retry` means that
/// nothing was written, `Lost` that something may have been.
pub const SEND: &str = "channel_send";

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendTo {
    /// To a conversation.
    Conversation(ConversationId),
    /// To a chat of an instance.
    Chat {
        /// The name of the instance.
        instance: Box<str>,
        /// The chat; `None` is the one that the instance has for messages without one.
        chat: Option<Box<str>>,
        /// The thread.
        thread: Option<Box<str>>,
    },
}

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendBy {
    /// A tool of an agent. To another chat than that of its turn only where `allow_send_to` of the instance says so, and not
    /// where the agent belongs to a user with a limited role.
    Tool {
        /// The agent.
        by: AgentId,
        /// The turn.
        turn: TurnId,
    },
    /// A client of the API.
    Operator,
    /// A schedule, trigger or workflow.
    Target,
    /// A decision is asked for.
    Approval,
}

impl SendBy {
    /// Why it is sent.
    #[must_use]
    pub const fn cause(self) -> SendCause {
        match self {
            Self::Tool { .. } => SendCause::Tool,
            Self::Operator => SendCause::Operator,
            Self::Target => SendCause::Target,
            Self::Approval => SendCause::Approval,
        }
    }
}

/// Sends a message to a chat: stored with the reply, and sent by a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SendToChat {
    /// Where.
    pub to: SendTo,
    /// What.
    pub what: SendContent,
    /// Who.
    pub by: SendBy,
}

command! {
    write "send_to_chat" SendToChat => SendView, Root, |it, world| Answer::stored(send(world, it))
}

fn send(world: &mut World, SendToChat { to, what, by }: SendToChat) -> Result<SendView, Refusal> {
    check_content(&what)?;
    let (instance, chat, mut thread) = place(world, &to)?;
    let mut reply_token = None;
    let Some(of) = rules::of(world, &instance) else { return Err(no_instance(&instance)) };
    let agent = match by {
        SendBy::Tool { by, turn } => {
            let is_own = own_chat(world, turn).is_some_and(|own| own == (&*instance, &*chat));
            let is_limited = index::agent(world, by).map_or(true, |agent| limit_of(world, agent).is_some());
            let is_allowed = || !is_limited && rules::is_listed(&of, &chat);
            if !is_own && !is_allowed() {
                let text = "the agent may answer its own chat only; `allow_send_to` of the instance lists others";
                return Err(Refusal::of(error_codes::CHANNEL_SEND_DENIED, text));
            }
            // To the chat that it answers it goes as the answer does.
            if is_own && let Some(message) = answered(world, &instance, turn) {
                reply_token.clone_from(&message.reply_token);
                if matches!(to, SendTo::Conversation(_)) {
                    thread.clone_from(&message.thread);
                }
            }
            Some(by)
        }
        SendBy::Operator | SendBy::Target | SendBy::Approval => None,
    };
    let out = Outgoing { cause: by.cause(), agent, what, thread, reply_token, ..Outgoing::default() };
    let sent = into_chat(world, &of, (&to, &chat), out)?;
    SendView::seen(world, sent)
}

/// Sends something to a chat of an instance, whose conversation begins with it where there is none.
///
/// # Errors
/// There is no room for it (429); then nothing is stored.
pub(super) fn into_chat(
    world: &mut World,
    of: &InstanceRules,
    (to, chat): (&SendTo, &str),
    out: Outgoing,
) -> Result<SendId, Refusal> {
    // A thread is a conversation of its own only where the instance has it so.
    let is_threaded = rules::merged(world, of, out.agent).threading.unwrap_or(false);
    let thread = out.thread.clone().filter(|_| is_threaded);
    let place = Place { instance: of, chat, thread: thread.as_deref() };
    let known = match to {
        SendTo::Conversation(id) => Some(*id),
        SendTo::Chat { .. } => world.resource::<Conversations>().find(&of.name, chat, place.thread),
    };
    admit(world, known, &out.what)?;
    let entered = known.or_else(|| enter(world, &place, None));
    let id = entered.ok_or_else(|| busy("there are too many conversations"))?;
    let (cause, agent) = (out.cause, out.agent);
    let sent = post(world, id, out)?;
    let details = json!({ "channel": of.name, "conversation": id, "send": sent, "cause": cause.as_str() });
    world.audit(audit_kinds::CHAT_MESSAGE_SENT, agent, details);
    Ok(sent)
}

/// The names that an address of a message means: instance, chat and thread.
pub(super) type Named = (Box<str>, Box<str>, Option<Box<str>>);

pub(super) fn place(world: &World, to: &SendTo) -> Result<Named, Refusal> {
    match to {
        SendTo::Conversation(id) => {
            let found = state::<Conversation>(world, *id).ok_or_else(|| Refusal::not_found("conversation", id))?;
            Ok((found.instance.clone(), found.chat.clone(), found.thread.clone()))
        }
        SendTo::Chat { instance, chat, thread } => {
            let of = rules::of(world, instance).ok_or_else(|| no_instance(instance))?;
            let chat = chat.clone().filter(|chat| !chat.is_empty()).or(of.default_conversation);
            let Some(chat) = chat else {
                let text = "recipient is missing, and the instance has no default_conversation";
                return Err(Refusal::bad_field("recipient", text));
            };
            let most = limits::CHAT_ID_BYTES_MAX;
            let is_long = |text: &str| text.len() > most || text.chars().any(char::is_control);
            if is_long(&chat) || thread.as_deref().is_some_and(is_long) {
                let text = format!("recipient or thread_id is longer than {most} bytes, or has a control character");
                return Err(Refusal::bad_field("recipient", text));
            }
            Ok((instance.clone(), chat, thread.clone()))
        }
    }
}

/// The instance and the chat whose message a turn answers.
fn own_chat(world: &World, turn: TurnId) -> Option<(&str, &str)> {
    let turn = world.get::<Turn>(index::turn(world, turn)?)?;
    let chat = turn.request.as_ref()?.chat.as_ref()?;
    Some((&chat.instance, &chat.chat))
}

/// The message that a turn answers.
fn answered<'w>(world: &'w World, instance: &str, turn: TurnId) -> Option<&'w ChatMessage> {
    let (_, chat) = own_chat(world, turn)?;
    let conversations = world.resource::<Conversations>().of_chat(instance, chat);
    let messages = conversations.flat_map(|id| world.resource::<Messages>().of(id));
    let mut all = messages.filter_map(|id| state::<ChatMessage>(world, id));
    all.find(|message| matches!(message.state, ChatMessageState::Answering { turn: of, .. } if of == turn))
}

/// Refuses what cannot be sent.
pub(super) fn check_content(what: &SendContent) -> Result<(), Refusal> {
    let most = limits::SEND_CONTENT_BYTES_MAX;
    match &what.content {
        None if what.text.trim().is_empty() => Err(Refusal::bad_field("message", "message must not be empty")),
        Some(content) if content.len() > most => {
            Err(Refusal::bad_field("content", format!("content is longer than {most} bytes")))
        }
        Some(content) if serde_json::from_str::<serde::de::IgnoredAny>(content).is_err() => {
            Err(Refusal::bad_field("content", "content is not JSON"))
        }
        None | Some(_) => Ok(()),
    }
}
