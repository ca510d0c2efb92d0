//! The turn of a message begins, or the message waits for room.

use agentsvc_components::agent::Agent;
use agentsvc_components::channel::conversation::{ChatSession, Conversation};
use agentsvc_components::channel::message::{ChatMessage, ChatMessageState, Sender};
use agentsvc_components::channel::rules::{AutoReply, ChatRole, InstanceRules};
use agentsvc_components::channel::send::SendCause;
use agentsvc_components::channel::signal::{ChatSignal, Shown};
use agentsvc_components::channel::{ChatMessageId, ConversationId};
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::manifest::channel::{ChannelOverrides, OutputFormat};
use agentsvc_components::session::message::Block;
use agentsvc_components::turn::{ChatSource, ModelName, Origin, TurnRequest};
use agentsvc_components::{AgentId, Refusal, RefusalKind, SessionId};
use bevy_ecs::prelude::World;

use super::index::Messages;
use super::metrics::count;
use super::post::{self, Outgoing};
use super::receive::joined;
use super::{limits, policy, precheck, rules, strangers, talk};
use crate::config::Settings;
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, find, state};
use crate::kernel::id_generator::mint_beside;
use crate::kernel::index;
use crate::kernel::outbox::Emit;
use crate::session;
use crate::turn::{MessageTaken, NewMessage, take, take_hidden};

/// What became of a message whose turn was to begin.
pub(super) enum Begun {
    /// Its turn is open.
    Turn(AgentId, MessageTaken),
    /// It waits for room.
    Waits,
    /// There is none: it was answered with that.
    Refused(Option<agentsvc_components::channel::SendId>, String),
}

/// Begins the turn of a message that waits.
pub(super) fn begin(world: &mut World, id: ChatMessageId) -> Option<Begun> {
    let message = state::<ChatMessage>(world, id)?.clone();
    let conversation = state::<Conversation>(world, message.conversation)?.clone();
    let of = rules::of(world, &conversation.instance)
        .unwrap_or_else(|| InstanceRules { name: conversation.instance.clone(), ..InstanceRules::default() });
    let agent = message.agent.filter(|agent| index::agent(world, *agent).is_ok());
    let Some(agent) = agent.or_else(|| of.agent.as_deref().and_then(|word| rules::agent(world, word))) else {
        return Some(refuse(world, id, &message, &of, "No agent is set for this channel."));
    };
    if let Some(limits) = &of.auto_reply
        && is_full(world, limits, id, &message)
    {
        let why = post::busy("too many answers to chats are being written");
        return Some(put_off(world, id, &message, &of, &why));
    }
    let merged = rules::merged(world, &of, Some(agent));
    if let Some(name) = precheck::model(&merged, &conversation, &message) {
        let new = new_message(world, id, &message, &conversation, &of, agent);
        return Some(match precheck::ask(world, id, agent, new, name) {
            Ok(()) => Begun::Waits,
            Err(refusal) => put_off(world, id, &message, &of, &refusal),
        });
    }
    let new = new_message(world, id, &message, &conversation, &of, agent);
    match take_in_session(world, &message, agent, new) {
        Ok(taken) => {
            opened(world, id, agent, taken, &of);
            Some(Begun::Turn(agent, taken))
        }
        Err(refusal) => Some(put_off(world, id, &message, &of, &refusal)),
    }
}

/// Takes a message in the session of its conversation, a new one where there is none yet; a question beside it in one of its own.
fn take_in_session(
    world: &mut World,
    message: &ChatMessage,
    agent: AgentId,
    new: NewMessage,
) -> Result<MessageTaken, Refusal> {
    let id = message.conversation;
    let is_strangers = state::<Conversation>(world, id).is_some_and(|its| its.is_strangers);
    if is_strangers {
        strangers::make_room(world, agent)?;
    }
    if message.is_aside && is_strangers {
        let owner = index::agent(world, agent)?;
        return take_hidden(world, owner, new, None).map(|(_, taken)| taken);
    }
    let known = state::<Conversation>(world, id).and_then(|its| its.session_with(agent));
    let session = known.filter(|_| !message.is_aside).unwrap_or_else(|| mint_beside(world, agent.0));
    let is_new = index::session(world, session).is_none();
    let (_, taken) = take(world, agent, Some(session), new, true, None)?;
    if is_new && is_strangers {
        session::strangers::set(world, taken.session, true);
    }
    Ok(taken)
}

/// Are so many answers being written that this one waits, or does one wait that came before it in its chat?
fn is_full(world: &World, limits: &AutoReply, id: ChatMessageId, message: &ChatMessage) -> bool {
    let all = world.resource::<Messages>();
    let waits =
        |id| matches!(state::<ChatMessage>(world, id).map(|it| &it.state), Some(ChatMessageState::Waiting { .. }));
    all.answering() >= limits.max_concurrent as usize
        || all.of(message.conversation).take_while(|earlier| *earlier < id).any(waits)
}

/// The message as its agent reads it.
fn new_message(
    world: &World,
    id: ChatMessageId,
    message: &ChatMessage,
    conversation: &Conversation,
    of: &InstanceRules,
    agent: AgentId,
) -> NewMessage {
    let said = joined(&message.text, message.files.as_deref());
    let is_empty = said.is_empty();
    let text = match conversation.is_group && !message.sender.name.is_empty() {
        true => format!("{}: {said}", message.sender.name),
        false => said,
    };
    let text = (!is_empty).then_some(Block::Text { text });
    let is_admin = rules::role(world, of, &conversation.chat, &message.sender) >= Some(ChatRole::Admin);
    let chat = ChatSource {
        channel_type: of.channel_type.clone(),
        instance: of.name.clone(),
        chat: conversation.chat.clone(),
        sender: message.sender.id.clone(),
    };
    let merged = rules::merged(world, of, Some(agent));
    let request = TurnRequest {
        system: system(&merged, conversation.is_group && !message.is_addressed),
        model: merged.model.as_deref().map(|name| Box::new(model(world, agent, name))),
        user: Some(user(of, message, conversation)),
        chat: Some(Box::new(chat)),
        thinking: conversation.thinking,
        ..TurnRequest::default()
    };
    NewMessage {
        blocks: text.into_iter().chain(message.blocks.iter().cloned()).collect(),
        origin: Origin::Channel { message: id },
        request: Some(Box::new(request)),
        taint: if is_admin { Taint::NONE } else { Taint::CHAT },
        found: message.found.clone(),
        repeats: None,
    }
}

/// The user that a turn of a chat is for: its sender, or where the adapter names none the room. No turn of a chat is without
/// one, for such a turn reads and changes what is of all users. Ids that begin like a room's are told apart from it.
fn user(of: &InstanceRules, message: &ChatMessage, conversation: &Conversation) -> Box<str> {
    let Sender { id, is_person, .. } = &message.sender;
    match (*is_person && !id.is_empty(), id.starts_with(['#', '\\'])) {
        (true, false) => format!("{}:{id}", of.name),
        (true, true) => format!("{}:\\{id}", of.name),
        (false, _) => format!("{}:#{}", of.name, conversation.chat),
    }
    .into()
}

/// What the agent is told beside its instructions.
fn system(merged: &ChannelOverrides, may_be_meant_for_others: bool) -> Option<String> {
    let plain = "Write plain text: the people who read it see Markdown as it is typed.";
    let silent = "The message was written in a group and does not name you. If it needs no answer of yours, answer with \
                  NO_REPLY and nothing else.";
    let is_plain = merged.output_format == Some(OutputFormat::PlainText);
    // Where another model was asked, it is decided.
    let decides = merged.reply_precheck.unwrap_or(false) && merged.reply_precheck_model.is_none();
    let may_be_silent = may_be_meant_for_others && decides;
    let own = merged.system_prompt.as_deref();
    let parts: Vec<&str> =
        own.into_iter().chain(is_plain.then_some(plain)).chain(may_be_silent.then_some(silent)).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// The model of a name: an alias, `provider/model`, or a model of the agent's provider.
pub(super) fn model(world: &World, agent: AgentId, name: &str) -> ModelName {
    let settings = world.resource::<Settings>();
    if let Some(known) = settings.aliases.get(name) {
        return ModelName { provider: known.provider.clone(), model: known.model.clone() };
    }
    let own = index::agent(world, agent).ok().and_then(|entity| world.get::<Agent>(entity));
    let provider = own.map(|own| settings.provider_of(&own.manifest.manifest.model)).unwrap_or_default();
    let (provider, model) = name.split_once('/').unwrap_or((provider, name));
    ModelName { provider: provider.into(), model: model.into() }
}

/// The turn is open: the message waits for its end.
fn opened(world: &mut World, id: ChatMessageId, agent: AgentId, taken: MessageTaken, of: &InstanceRules) {
    let Ok(entity) = find::<ChatMessage>(world, id) else { return };
    let now = world.resource::<Now>().0;
    let deadline = of.auto_reply.as_ref().map(|limits| now.plus_ms(i64::from(limits.timeout_secs) * 1_000));
    let state = ChatMessageState::Answering { agent, session: taken.session, turn: taken.turn, deadline };
    // What was said is in the session now.
    change(world, entity, |message: &mut ChatMessage| {
        (message.state, message.agent) = (state, Some(agent));
        (message.text, message.blocks, message.found) = (Box::default(), Vec::new(), Vec::new());
        message.files = None;
    });
    let Some(message) = world.get::<ChatMessage>(entity) else { return };
    let (conversation, is_aside, is_checked) = (message.conversation, message.is_aside, message.is_checked);
    if !is_checked {
        policy::count_turn(world, conversation);
    }
    if !is_aside {
        remember(world, conversation, agent, taken.session);
    }
    count(world, &of.name, |counts| counts.turns += 1);
    let typing = rules::merged(world, of, Some(agent)).typing_mode.unwrap_or_default();
    signal(world, id, Shown::Began { agent, session: taken.session, turn: taken.turn, typing });
}

/// The conversation knows its session with the agent.
fn remember(world: &mut World, id: ConversationId, agent: AgentId, session: SessionId) {
    let mut forgotten = None;
    let known = state::<Conversation>(world, id).map(|its| its.sessions.clone()).unwrap_or_default();
    // What is being answered in a session would go with it.
    let oldest = known.iter().find(|its| !session::strangers::is_busy(world, its.session)).map(|its| its.session);
    talk::update(world, id, |its| {
        its.sessions.retain(|known| known.agent != agent);
        its.sessions.push(ChatSession { agent, session });
        if its.sessions.len() > limits::CONVERSATION_SESSIONS_MAX {
            let at = its.sessions.iter().position(|its| Some(its.session) == oldest).unwrap_or(0);
            forgotten = Some(its.sessions.remove(at));
        }
    });
    if let Some(its) = forgotten {
        session::strangers::forget(world, its.session);
    }
}

/// There is no room for the turn, or its agent does not run: the message waits a while, or is answered with that.
fn put_off(world: &mut World, id: ChatMessageId, message: &ChatMessage, of: &InstanceRules, why: &Refusal) -> Begun {
    let now = world.resource::<Now>().0;
    let is_soon = why.retry_after_secs.is_some_and(|secs| i64::from(secs) * 1_000 < limits::CHAT_WAIT_MS_MAX);
    let waits = is_soon && matches!(why.kind, RefusalKind::Busy | RefusalKind::TooMany);
    let is_early = message.at > now || now.ms_since(message.at) < limits::CHAT_WAIT_MS_MAX as u64;
    if waits && is_early {
        let due = now.plus_ms(limits::CHAT_RETRY_MS);
        if let Ok(entity) = find::<ChatMessage>(world, id) {
            change(world, entity, |message: &mut ChatMessage| message.state = ChatMessageState::Waiting { due });
        }
        return Begun::Waits;
    }
    // Why is for the owner's eyes: a chat reads a code.
    let code = why.code.map_or_else(String::new, |code| format!(" ({code})"));
    refuse(world, id, message, of, &format!("The agent cannot answer now{code}."))
}

fn refuse(world: &mut World, id: ChatMessageId, message: &ChatMessage, of: &InstanceRules, text: &str) -> Begun {
    let out = Outgoing { agent: message.agent, ..Outgoing::to(message, SendCause::Notice, text) };
    let send = (!of.suppress_errors).then(|| post::post_or_refuse(world, message.conversation, out)).flatten();
    remove(world, id);
    Begun::Refused(send, text.to_owned())
}

/// A message is answered, or never will be.
pub(super) fn remove(world: &mut World, id: ChatMessageId) {
    if let Some(entity) = world.resource::<Messages>().get(id) {
        world.despawn(entity);
    }
}

/// Shows in the chat how far a message is.
pub(super) fn signal(world: &mut World, id: ChatMessageId, shown: Shown) {
    let Some(message) = state::<ChatMessage>(world, id) else { return };
    let Some(conversation) = state::<Conversation>(world, message.conversation) else { return };
    let signal = ChatSignal {
        message: id,
        conversation: message.conversation,
        instance: conversation.instance.clone(),
        chat: conversation.chat.clone(),
        thread: message.thread.clone(),
        message_id: message.message_id.clone(),
        shown,
    };
    world.effect(signal);
}

/// The name of an agent.
pub(super) fn name_of(world: &World, agent: AgentId) -> Option<Box<str>> {
    let entity = index::agent(world, agent).ok()?;
    world.get::<Agent>(entity).map(|agent| agent.name.clone())
}
