//! A message of a chat comes.

use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::channel::message::{ChatCommand, ChatEvent, ChatMessage, ChatMessageState};
use agentsvc_components::channel::rules::{ChatRole, InstanceRules};
use agentsvc_components::channel::{ChatMessageId, ConversationId, SendId};
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::manifest::channel::ChannelOverrides;
use agentsvc_components::{AgentId, Refusal, SessionId, TurnId};
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::aside::aside;
use super::begin::{Begun, begin};
use super::index::{Conversations, Messages};
use super::metrics::count;
use super::policy::{self, Verdict};
use super::post::busy;
use super::talk::{Place, enter, let_in, update};
use super::{audit_kinds, check_event, error_codes, last, limits, relay, route, rules};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{change, state};
use crate::kernel::id_generator::mint;
use crate::kernel::outbox::Emit;

/// A message of a chat comes. It is stored with the reply: nothing may be shown in the chat before. A refusal stores nothing
/// and may be tried again (429), or is the adapter's fault (400, 404).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReceiveMessage {
    /// The name of the instance.
    pub instance: Box<str>,
    /// The message.
    pub event: ChatEvent,
}

command! {
    write "receive_message" ReceiveMessage => Received, Root, |it, world| Answer::stored(receive(world, it))
}

/// What became of a message of a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// Its turn is open.
    Turn {
        /// The message.
        message: ChatMessageId,
        /// Its conversation.
        conversation: ConversationId,
        /// Which agent answers.
        agent: AgentId,
        /// In which session.
        session: SessionId,
        /// The turn.
        turn: TurnId,
    },
    /// It waits for further messages of its sender, or for room. Show nothing: a signal tells when its turn begins.
    Waiting(ChatMessageId),
    /// It came before.
    Duplicate,
    /// It gets no answer. Show nothing.
    Ignored(Why),
    /// It is a command, to be carried out and completed ([`CompleteCommand`](super::CompleteCommand)).
    Command(PendingCommand),
    /// It was answered by the daemon; the answer is being sent.
    Answered {
        /// The answer; `None` when there was no room for it.
        send: Option<SendId>,
        /// Its text.
        text: String,
    },
    /// It was passed on to another chat, as it asked.
    Relayed(SendId),
}

/// Why a message gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// It says nothing.
    Empty,
    /// The policy of chats of two, or of groups, or a pattern of `[auto_reply]` leaves it out.
    Policy,
    /// Its chat or sender is not known, and was told so.
    Stranger,
    /// There were too many messages, and the chat was told so.
    Rate,
    /// Too many messages in a short time, or too many of other bots: bots may answer each other.
    Loop,
    /// No agent is set, and the chat was told so.
    NoAgent,
    /// The sender may not do this, and was told so; or a message is to be passed on to a chat that the configuration does not
    /// name.
    Denied,
    /// The code of a pairing is wrong, and there were too many before.
    WrongCode,
    /// There are too many conversations.
    Full,
}

/// A command of a chat that is to be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingCommand {
    /// The message that it is.
    pub message: ChatMessageId,
    /// Its conversation.
    pub conversation: ConversationId,
    /// The name of the instance.
    pub instance: Box<str>,
    /// The chat.
    pub chat: Box<str>,
    /// Its name, without the slash.
    pub name: Box<str>,
    /// What follows it.
    pub args: Box<str>,
    /// The message whose button it is, which its answer replaces.
    pub edits: Option<Box<str>>,
    /// The agent that answers in the chat, where there is one.
    pub agent: Option<AgentId>,
    /// The session of the chat with that agent, once there is one.
    pub session: Option<SessionId>,
    /// What the sender may do; `None` where the configuration names no users and the chat was let in.
    pub role: Option<ChatRole>,
    /// May the sender decide approvals?
    pub may_approve: bool,
    /// Do the messages of the conversation ask for extended thinking?
    pub thinking: bool,
    /// The id of the sender.
    pub sender: Box<str>,
    /// The id of the message on its platform.
    pub message_id: Option<Box<str>>,
}

/// The refusal of an instance that is not there.
pub(super) fn no_instance(name: &str) -> Refusal {
    let shown: String = name.chars().take(64).collect();
    let text = format!("there is no channel {shown:?}");
    Refusal { field: Some("channel".to_owned()), ..Refusal::of(error_codes::CHANNEL_NOT_FOUND, text) }
}

/// What [`ReceiveMessage`] does.
pub(crate) fn receive(
    world: &mut World,
    ReceiveMessage { instance, mut event }: ReceiveMessage,
) -> Result<Received, Refusal> {
    let Some(of) = rules::of(world, &instance) else { return Err(no_instance(&instance)) };
    check_event::check(&mut event)?;
    let default_agent = of.agent.as_deref().and_then(|word| rules::agent(world, word));
    let is_threaded = rules::merged(world, &of, default_agent).threading.unwrap_or(false);
    let thread = event.thread.clone().filter(|_| is_threaded);
    let known = world.resource::<Conversations>().find(&of.name, &event.chat, thread.as_deref());
    admit(world, &of.name, known, &event)?;
    relay::admit(world, &of, &event)?;
    let place = Place { instance: &of, chat: &event.chat, thread: thread.as_deref() };
    let Some(id) = enter(world, &place, Some(&event)) else {
        count(world, &of.name, |counts| counts.ignored += 1);
        return Ok(Received::Ignored(Why::Full));
    };
    if is_repeated(world, id, &event) {
        count(world, &of.name, |counts| counts.duplicates += 1);
        return Ok(Received::Duplicate);
    }
    note(world, id, &event);
    count(world, &of.name, |counts| counts.received += 1);
    let received = decide(world, &of, id, event);
    if matches!(received, Received::Ignored(_)) {
        count(world, &of.name, |counts| counts.ignored += 1);
    }
    Ok(received)
}

/// Refuses a message for which there is no room. It changes nothing, so that it may come again.
fn admit(
    world: &World,
    instance: &str,
    conversation: Option<ConversationId>,
    event: &ChatEvent,
) -> Result<(), Refusal> {
    let all = world.resource::<Messages>();
    let long = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
    let bytes = event.text.len() + long(&event.reply_token) + long(&event.files);
    let (count, own_bytes) = all.share(instance);
    // No instance takes the room of the others.
    let is_full = all.len() >= limits::CHAT_MESSAGES_MAX
        || all.used.bytes + bytes > limits::CHAT_MESSAGES_BYTES_MAX
        || count >= limits::CHANNEL_MESSAGES_MAX
        || own_bytes + bytes > limits::CHANNEL_MESSAGES_BYTES_MAX;
    let open = conversation.map_or(0, |id| all.of(id).count());
    match is_full || open >= limits::CONVERSATION_MESSAGES_MAX {
        true => Err(busy("too many messages of chats are not answered yet")),
        false => Ok(()),
    }
}

/// A text with what stands for its files.
pub(super) fn joined(text: &str, files: Option<&str>) -> String {
    let files = files.unwrap_or_default();
    let gap = if text.is_empty() || files.is_empty() { "" } else { "\n" };
    format!("{text}{gap}{files}")
}

/// A hash of an id that a platform gave: 64-bit FNV-1a.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn is_repeated(world: &World, id: ConversationId, event: &ChatEvent) -> bool {
    let hash = event.message_id.as_deref().map(hash);
    hash.is_some_and(|hash| state::<Conversation>(world, id).is_some_and(|its| its.seen.contains(&hash)))
}

/// The conversation remembers the message's id.
fn see(world: &mut World, id: ConversationId, event: &ChatEvent) {
    let Some(message_id) = &event.message_id else { return };
    update(world, id, |its| {
        if its.seen.len() >= limits::CONVERSATION_SEEN_MAX {
            its.seen.remove(0);
        }
        its.seen.push(hash(message_id));
        its.last_message_id = Some(message_id.clone());
    });
}

fn note(world: &mut World, id: ConversationId, event: &ChatEvent) {
    see(world, id, event);
    let now = world.resource::<Now>().0;
    let title = event.title.clone().unwrap_or_else(|| event.sender.name.clone());
    let is_trusted = state::<Conversation>(world, id)
        .is_some_and(|its| last::is_trusted(world, &its.instance, &its.chat, event.is_group));
    update(world, id, |its| {
        (its.last_at, its.is_group, its.is_trusted) = (now, event.is_group, is_trusted);
        if !title.is_empty() {
            its.title = title;
        }
        if !event.sender.is_bot {
            its.bot_replies = 0;
        }
    });
}

/// What becomes of a message that is new.
fn decide(world: &mut World, of: &InstanceRules, id: ConversationId, mut event: ChatEvent) -> Received {
    let Some(conversation) = state::<Conversation>(world, id).cloned() else { return Received::Ignored(Why::Full) };
    let brings_files = event.files.is_some() || !event.blocks.is_empty();
    if event.text.trim().is_empty() && !brings_files && event.command.is_none() {
        return Received::Ignored(Why::Empty);
    }
    let agent = route::route(world, of, (id, &conversation), &event);
    let merged = rules::merged(world, of, agent);
    match policy::judge(world, of, &merged, &conversation, id, &event) {
        Verdict::Pass => {}
        Verdict::Silent(why) => return Received::Ignored(why),
        Verdict::Tell(notice, why, text) => return policy::tell(world, id, notice, why, &event, text),
        Verdict::Answer(text) => return policy::answer(world, id, &event, text),
    }
    let is_by_stranger = policy::is_by_stranger(world, of, &event);
    let_in(world, id, &of.name, is_by_stranger);
    if let Some(to) = &event.deliver_to {
        return relay::relay(world, of, &event, to);
    }
    event.command = event.command.take().filter(|command| merged.allows_command(&command.name));
    let is_aside = event.take_aside();
    let command = event.command.clone();
    if let Some(command) = command {
        return of_command(world, of, id, agent, event, command);
    }
    let Some(agent) = agent else { return policy::no_agent(world, of, id, &event) };
    if is_aside {
        return aside(world, of, id, &event, agent);
    }
    let others = broadcast(world, of, &event, agent);
    if event.files.is_some() {
        let due = world.resource::<Now>().0.plus_ms(limits::CHAT_FILES_MS);
        let first = store(world, of, id, &event, Some(agent), ChatMessageState::Waiting { due });
        for other in others {
            store(world, of, id, &event, Some(other), ChatMessageState::Waiting { due });
        }
        return Received::Waiting(first);
    }
    if !others.is_empty() {
        let due = world.resource::<Now>().0;
        let shared = store(world, of, id, &event, Some(agent), ChatMessageState::Waiting { due });
        for other in others {
            let copy = store(world, of, id, &event, Some(other), ChatMessageState::Waiting { due });
            begin(world, copy);
        }
        return open(world, id, shared);
    }
    match window(&merged, of) {
        0 => {
            let due = world.resource::<Now>().0;
            let message = store(world, of, id, &event, Some(agent), ChatMessageState::Waiting { due });
            open(world, id, message)
        }
        window => join(world, of, id, event, (agent, &merged, window)),
    }
}

/// The other agents that answer in a chat.
fn broadcast(world: &World, of: &InstanceRules, event: &ChatEvent, first: AgentId) -> Vec<AgentId> {
    let words = of.broadcast.iter().filter(|(chat, _)| *chat == event.chat).flat_map(|(_, agents)| agents);
    let mut found = Vec::new();
    for id in words.filter_map(|word| rules::agent(world, word)) {
        if id != first && !found.contains(&id) && rules::answers_in(world, of, id) {
            found.push(id);
        }
    }
    found.truncate(limits::CONVERSATION_SESSIONS_MAX - 1);
    found
}

/// Milliseconds in which messages are joined.
fn window(merged: &ChannelOverrides, of: &InstanceRules) -> i64 {
    let window = i64::from(merged.message_debounce_ms.unwrap_or(0).max(of.coalesce_window_ms));
    window.min(limits::CHAT_WAIT_MS_MAX)
}

/// Begins the turn of a message.
pub(super) fn open(world: &mut World, conversation: ConversationId, message: ChatMessageId) -> Received {
    match begin(world, message) {
        Some(Begun::Turn(agent, taken)) => {
            let (session, turn) = (taken.session, taken.turn);
            Received::Turn { message, conversation, agent, session, turn }
        }
        Some(Begun::Waits) => Received::Waiting(message),
        Some(Begun::Refused(send, text)) => Received::Answered { send, text },
        None => Received::Ignored(Why::Full),
    }
}

/// Joins a message to one of its sender that waits, or has it wait for others.
fn join(
    world: &mut World,
    of: &InstanceRules,
    id: ConversationId,
    event: ChatEvent,
    (agent, merged, window): (AgentId, &ChannelOverrides, i64),
) -> Received {
    let now = world.resource::<Now>().0;
    let waits = |message: &ChatMessage| {
        matches!(message.state, ChatMessageState::Waiting { .. })
            && message.sender.id == event.sender.id
            && message.agent == Some(agent)
            && message.thread == event.thread
            && message.files.is_none()
            && !message.is_aside
            && message.text.len() + event.text.len() < limits::CHAT_TEXT_BYTES_MAX
            && message.blocks.len() + event.blocks.len() <= limits::CHAT_BLOCKS_MAX
    };
    let all = world.resource::<Messages>();
    let found = all.of(id).rev().find(|id| state::<ChatMessage>(world, *id).is_some_and(waits));
    let Some((known, entity)) = found.and_then(|id| Some((id, world.resource::<Messages>().get(id)?))) else {
        let state = ChatMessageState::Waiting { due: now.plus_ms(window) };
        return Received::Waiting(store(world, of, id, &event, Some(agent), state));
    };
    let most_ms =
        i64::from(merged.message_debounce_max_ms.unwrap_or(limits::DEBOUNCE_MS)).min(limits::CHAT_WAIT_MS_MAX);
    let most = merged.message_debounce_max_buffer.unwrap_or(limits::DEBOUNCE_JOINED).max(1);
    let debounce = merged.message_debounce_ms.unwrap_or(0) > 0;
    let is_addressed = is_addressed(world, of, &event, Some(agent));
    let mut is_full = false;
    change(world, entity, |message: &mut ChatMessage| {
        let text = event.shielded.as_deref().unwrap_or(&event.text);
        let between = if message.text.is_empty() || text.is_empty() { "" } else { "\n" };
        message.text = format!("{}{between}{text}", message.text).into();
        message.blocks.extend(event.blocks);
        message.found.extend(event.found);
        message.message_id = event.message_id.or_else(|| message.message_id.take());
        message.reply_token = event.reply_token.or_else(|| message.reply_token.take());
        message.joined += 1;
        message.is_addressed |= is_addressed;
        is_full = message.joined >= most;
        if let ChatMessageState::Waiting { due } = &mut message.state
            && debounce
            && !is_full
        {
            *due = now.plus_ms(window).min(message.at.plus_ms(most_ms.max(window)));
        }
    });
    // There is nothing left to wait for, not even a beat.
    if is_full {
        return open(world, id, known);
    }
    Received::Waiting(known)
}

/// Stores a message.
pub(super) fn store(
    world: &mut World,
    of: &InstanceRules,
    conversation: ConversationId,
    event: &ChatEvent,
    agent: Option<AgentId>,
    state: ChatMessageState,
) -> ChatMessageId {
    let is_addressed = is_addressed(world, of, event, agent);
    let message = ChatMessage {
        conversation,
        instance: of.name.clone(),
        sender: event.sender.clone(),
        text: event.shielded.clone().unwrap_or_else(|| event.text.clone()),
        found: event.found.clone(),
        blocks: event.blocks.clone(),
        files: event.files.clone(),
        thread: event.thread.clone(),
        message_id: event.message_id.clone(),
        reply_token: event.reply_token.clone(),
        agent,
        at: world.resource::<Now>().0,
        joined: 1,
        is_aside: false,
        is_checked: false,
        is_addressed,
        state,
    };
    let id: ChatMessageId = mint(world, Slot::ROOT);
    let entity = world.spawn((id, message)).id();
    world.mark(entity);
    id
}

/// Is the message meant for the bot? One of two people always is.
fn is_addressed(world: &mut World, of: &InstanceRules, event: &ChatEvent, agent: Option<AgentId>) -> bool {
    let merged = rules::merged(world, of, agent);
    !event.is_group || rules::is_addressed(world, of, &merged, event)
}

/// A command waits to be carried out.
fn of_command(
    world: &mut World,
    of: &InstanceRules,
    id: ConversationId,
    agent: Option<AgentId>,
    event: ChatEvent,
    command: ChatCommand,
) -> Received {
    let details = json!({ "channel": of.name, "conversation": id, "command": command.name, "sender": event.sender.id });
    world.audit(audit_kinds::CHAT_COMMAND, agent, details);
    policy::count_turn(world, id);
    let message = store(world, of, id, &event, agent, ChatMessageState::Command(command));
    match super::command::view(world, message) {
        Some(pending) => Received::Command(pending),
        None => Received::Ignored(Why::Full),
    }
}
