//! A message is taken: the door of every turn (spec 1, Message routing rules).

use crate::agent::{check_reach, error_codes, holder_of};
use crate::turn::metrics::TurnTotals;
use std::sync::Arc;

use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::{InjectionFound, Taint};
use agentsvc_components::session::Session;
use agentsvc_components::session::message::{Block, ChatMessage, Role, ToolCall, Usage};
use agentsvc_components::turn::outcome::StopReason;
use agentsvc_components::turn::{Origin, ParentLink, Turn, TurnEnd, TurnRequest, TurnState};
use agentsvc_components::{AgentId, Refusal, RefusalKind, SessionId, TurnId};

use super::fired::Said;
use super::repeat::Repeated;
use super::{Children, MessageCame, Waiting, admit, first_rows, inbox, repeat, share};
use crate::event::event_text;
use crate::event::told::{self, Events};
use crate::kernel::acting::Acting;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::id_generator::mint_for;
use crate::kernel::index::{self, Index, id_of};
use crate::kernel::outbox::Outbox;
use crate::kernel::reaction::react;
use crate::{budget, proactive_memory, session, taint};

/// A turn's end, as its asker sees it (spec 1, POST message).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TurnReply {
    /// The answer; what was written so far when the turn was stopped.
    pub response: String,
    /// Tokens of the whole turn.
    pub usage: Usage,
    /// Model calls.
    pub iterations: u32,
    /// Session of the turn.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// How it ended: done, stopped or interrupted.
    pub end: TurnEnd,
    /// Why the model stopped writing.
    pub stop: StopReason,
    /// Notes to the owner (spec 1, Owner notice).
    pub notices: Vec<Box<str>>,
    /// Calls of the client's own tools, which the client is to run.
    pub tool_calls: Vec<ToolCall>,
}

/// A message on its way in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NewMessage {
    /// What is said; not empty.
    pub blocks: Vec<Block>,
    /// Where it comes from.
    pub origin: Origin,
    /// What is asked beside it.
    pub request: Option<Box<TurnRequest>>,
    /// Untrusted content in it.
    pub taint: Taint,
    /// What the scanner found in it.
    pub found: Vec<InjectionFound>,
    /// What its turn answers again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeated>,
}

impl NewMessage {
    /// A message of one text, from the REST API.
    pub fn text(text: impl Into<String>) -> Self {
        Self { blocks: vec![Block::Text { text: text.into() }], ..Self::default() }
    }

    fn check(&self) -> Result<(), Refusal> {
        let bytes: usize =
            self.blocks.iter().map(|block| if let Block::Text { text } = block { text.len() } else { 1 }).sum();
        if bytes == 0 {
            return Err(Refusal::bad_field("message", "message must not be empty"));
        }
        let most = limit::MESSAGE_BYTES_MAX + limit::ATTACHED_BYTES_MAX;
        if bytes > most {
            return Err(Refusal::bad_field("message", format!("message and attachments are longer than {most} bytes")));
        }
        Ok(())
    }
}

/// A message that is safe: stored, and first or queued in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MessageTaken {
    /// The session it went to.
    pub session: SessionId,
    /// The turn that will answer it.
    pub turn: TurnId,
}

/// Sends a message and waits for the turn's end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SendMessage {
    /// To whom.
    pub agent: AgentId,
    /// In which session; `None` is the current one, an unknown id makes a new one (rules 1 to 3).
    pub session: Option<SessionId>,
    /// What is said.
    pub message: NewMessage,
}

command! {
    write "send_message" SendMessage => TurnReply, Id(|it| it.agent.0), |it, world| {
        match take(world, it.agent, it.session, it.message, false, None) {
            Ok((entity, _)) => Answer::Later(Box::new(move |world, slot| {
                world.resource_mut::<Waiting>().0.get().insert(entity, slot);
            })),
            Err(refusal) => Answer::Now(Err(refusal)),
        }
    }
}

/// Sends a message and waits only until it is safe; the turn is watched through the session's stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PostMessage {
    /// To whom.
    pub agent: AgentId,
    /// In which session; as in [`SendMessage`].
    pub session: Option<SessionId>,
    /// What is said.
    pub message: NewMessage,
}

command! {
    write "post_message" PostMessage => MessageTaken, Id(|it| it.agent.0), |it, world|
        Answer::stored(take(world, it.agent, it.session, it.message, true, None).map(|(_, taken)| taken))
}

/// Which session a message would go to, so that its stream can be watched from before the first token.
#[derive(Clone, Copy, Debug)]
pub struct ResolveSession {
    /// Whose.
    pub agent: AgentId,
    /// As in [`SendMessage`].
    pub session: Option<SessionId>,
}

command! {
    quick "resolve_session" ResolveSession => SessionId, Id(|it| it.agent.0), |it, world|
        Answer::Now(resolve(world, it.agent, it.session))
}

fn resolve(world: &World, agent: AgentId, session: Option<SessionId>) -> Result<SessionId, Refusal> {
    let owner = index::agent(world, agent)?;
    let Some(id) = session else {
        let current = world.get::<Agent>(owner).map(|agent| agent.current);
        return current.map(|s| id_of(world, s)).ok_or_else(|| Refusal::not_found("agent", agent));
    };
    session::owned_or_absent(world, owner, id).map(|_| id)
}

/// Stores the message and puts its turn in the session's inbox.
pub(crate) fn take(
    world: &mut World,
    agent: AgentId,
    session: Option<SessionId>,
    message: NewMessage,
    streaming: bool,
    link: Option<ParentLink>,
) -> Result<(Entity, MessageTaken), Refusal> {
    let parent = link.as_ref().and_then(|link| index::turn(world, link.turn)).and_then(|turn| world.get::<Turn>(turn));
    let depth = parent.map_or(0, |parent| parent.depth.saturating_add(1));
    let owner = index::agent(world, agent)?;
    message.check()?;
    check(world, owner)?;
    let current = world.get::<Agent>(owner).map(|agent| agent.current);
    let found = match session {
        None => current,
        Some(id) => session::owned_or_absent(world, owner, id)?,
    };
    if let Some(found) = found {
        check_inbox(world, found)?;
    }
    if let Some(repeated) = message.repeats {
        repeat::check(world, found, repeated)?;
    }
    let entity = match (found, session) {
        (Some(entity), _) => entity,
        (None, id) => {
            if let Some(id) = id.filter(|_| !is_made_of_names(&message)) {
                session::check_chosen(id)?;
            }
            session::admit(world, Some(owner))?;
            session::spawn(world, owner, id, None)
        }
    };
    Ok(open(world, (owner, entity), message, streaming, link, depth))
}

/// Does the daemon make the id of the message's session of names: those of a chat, a hook, another node, or an A2A client? Other
/// ids are given by clients and by models.
fn is_made_of_names(message: &NewMessage) -> bool {
    let is_chat = message.request.as_ref().is_some_and(|request| request.chat.is_some());
    is_chat || matches!(message.origin, Origin::A2a { .. } | Origin::Hook { .. } | Origin::Peer)
}

/// Takes a message in a hidden session that ends with its turn: of a conversation that strangers began, or one of several users,
/// so that they reach no conversation of others and leave no sessions behind; or what is asked about a message before it is
/// answered.
///
/// # Errors
/// As [`take`], but for the session.
pub(crate) fn take_hidden(
    world: &mut World,
    owner: Entity,
    message: NewMessage,
    link: Option<ParentLink>,
) -> Result<(Entity, MessageTaken), Refusal> {
    message.check()?;
    check(world, owner)?;
    let parent = link.as_ref().and_then(|link| index::turn(world, link.turn)).and_then(|turn| world.get::<Turn>(turn));
    let depth = parent.map_or(0, |parent| parent.depth.saturating_add(1));
    let id = mint_for(world, owner);
    let session = session::spawn_hidden(world, owner, id);
    Ok(open(world, (owner, session), message, false, link, depth))
}

/// The turn of a message that may be taken.
fn open(
    world: &mut World,
    (owner, session): (Entity, Entity),
    message: NewMessage,
    streaming: bool,
    link: Option<ParentLink>,
    depth: u8,
) -> (Entity, MessageTaken) {
    let NewMessage { blocks, origin, request, taint, found, repeats } = message;
    let repeats = repeats.map(|repeated| repeated.first);
    let opening = Opening::Messages(vec![ChatMessage { role: Role::User, blocks }]);
    let (turn, taken) =
        begin(world, owner, session, NewTurn { opening, origin, request, streaming, depth, link, taint, repeats });
    let (actor, agent) = (world.resource::<Acting>().0, id_of::<AgentId>(world, owner));
    for found in &found {
        taint::add(world, turn, Taint::INJECTION, origin.as_str());
        taint::note_injection(world, actor, Some(agent), "message", found);
    }
    (turn, taken)
}

/// Refuses a message to a session in which too many wait.
pub(super) fn check_inbox(world: &World, session: Entity) -> Result<(), Refusal> {
    let queued = world.get::<Session>(session).map_or(0, |session| session.queued);
    if queued < limit::SESSION_INBOX_MAX {
        return Ok(());
    }
    let text = format!("the session's queue is full ({queued} messages); wait for some turns to end");
    Err(Refusal { retry_after_secs: Some(5), ..Refusal::new(RefusalKind::TooMany, text) })
}

/// Refuses a message to an agent that is not for the agent that acts, does not run or whose budget or storage is
/// used up, or to a full world.
pub(super) fn check(world: &World, owner: Entity) -> Result<(), Refusal> {
    check_reach(world, owner)?;
    let state = world.get::<Agent>(owner).map_or(AgentState::Terminated, |agent| agent.state);
    if state != AgentState::Running {
        let text = format!("the agent is not running (state {}); start it first", state.as_str());
        return Err(Refusal::of(error_codes::AGENT_NOT_RUNNING, text));
    }
    if world.resource::<Index>().turn_count() >= limit::TURNS_OPEN_MAX {
        return Err(Refusal::busy("too many turns are open; try again later", 5));
    }
    share::admit(world, owner)?;
    session::has_room(world, owner)?;
    budget::at_door(world, owner)
}

/// The rows that a turn begins with.
pub(super) enum Opening {
    /// Its message, behind those that came with it; not empty.
    Messages(Vec<ChatMessage>),
    /// The one message of a fired turn.
    Said(Arc<Said>),
}

/// What a turn begins with.
pub(super) struct NewTurn {
    /// Its rows.
    pub(super) opening: Opening,
    /// Where it comes from.
    pub(super) origin: Origin,
    /// What is asked beside it.
    pub(super) request: Option<Box<TurnRequest>>,
    /// Someone reads the answer as it is written.
    pub(super) streaming: bool,
    /// Number of turns of triggers and of messages of agents between this one and its first cause, itself included.
    pub(super) depth: u8,
    /// The turn that began it through `agent_send`.
    pub(super) link: Option<ParentLink>,
    /// Untrusted content that it begins with.
    pub(super) taint: Taint,
    /// The first of the turns that answer its message, where it answers one again.
    pub(super) repeats: Option<TurnId>,
}

/// Makes the turn and its rows. Messages that came with it stand before it like turns of their own: each user message
/// begins an ordinal.
pub(super) fn begin(world: &mut World, owner: Entity, session: Entity, new: NewTurn) -> (Entity, MessageTaken) {
    let now = world.resource::<Now>().0;
    let turn: TurnId = mint_for(world, owner);
    let taint = taint::tracked(world, new.taint);
    let mut states_facts = false;
    let (text, (ordinal, next_index), late) = match new.opening {
        Opening::Messages(messages) => {
            states_facts = proactive_memory::states_facts(world, owner, new.origin, &messages);
            let addresses = taint::addresses::of_messages(world, &messages);
            taint::addresses::begin(world, session, new.origin, taint, &addresses);
            let text = messages.last().map(|message| told(&message.blocks)).unwrap_or_default();
            (text, first_rows::write_messages(world, session, turn, messages, new.repeats), None)
        }
        Opening::Said(said) => {
            taint::addresses::begin(world, session, new.origin, taint, &said.addresses);
            let (row, ordinal) = first_rows::write_said(world, session, turn, &said);
            (Arc::clone(&said.told), (ordinal, 1), Some(row))
        }
    };
    let mut journal = taint::began_by(taint, new.origin, source_of(new.origin));
    if states_facts {
        journal.get_or_insert_default().states_facts = true;
    }
    let component = Turn {
        agent: owner,
        session,
        holder: holder_of(world, owner),
        next: None,
        created_at: now,
        called_at: now,
        usage: Usage::default(),
        request: new.request.map(Arc::from),
        link: new.link.map(Box::new),
        journal,
        burst: None,
        ordinal,
        next_index,
        attempt: 0,
        iteration: 0,
        tool_calls: 0,
        state: TurnState::Queued,
        origin: new.origin,
        depth: new.depth,
        taint,
        streaming: new.streaming,
        cancelled: false,
        pending: Vec::new(),
    };
    let entity = world.spawn((turn, component)).id();
    world.resource_mut::<Index>().turns_by_agent.insert((owner, entity));
    if let Some(link) = new.link {
        world.resource_mut::<Children>().insert(&link, entity);
    }
    taint::began(world, owner, session, taint);
    world.resource_mut::<TurnTotals>().messages += 1;
    react(world, &MessageCame(new.origin));
    let (agent_id, session_id) = (id_of(world, owner), id_of(world, session));
    tell(world, entity, Event::MessageReceived { agent: agent_id, session: session_id, turn, text });
    let mut outbox = world.resource_mut::<Outbox>();
    outbox.late.extend(late);
    outbox.mark(session);
    // What a trigger fires is stored with its burst, or marked when it comes into none.
    if !matches!(new.origin, Origin::Trigger { .. }) {
        outbox.mark(entity);
    }
    if inbox::push(world, session, entity) {
        admit::enqueue(world, entity);
    }
    (entity, MessageTaken { session: session_id, turn })
}

/// Tells an event of a turn.
fn tell(world: &mut World, turn: Entity, event: Event) {
    let event = told::of_turn(world, turn, event);
    world.resource_mut::<Events>().push(event);
}

/// What brought the untrusted content that a turn begins with, for people.
const fn source_of(origin: Origin) -> &'static str {
    match origin {
        Origin::Api | Origin::WebSocket | Origin::OpenAi => "its message",
        Origin::Agent { .. } => "the message of another agent",
        Origin::Peer => "the message of another node",
        Origin::Trigger { .. } => taint::EVENT_OF_TRIGGER,
        Origin::Schedule { .. } => "its schedule",
        Origin::Workflow { .. } => "its workflow",
        Origin::A2a { .. } => "an A2A message",
        Origin::Dream { .. } => "its memory",
        Origin::Hook { .. } => "a hook",
        Origin::Channel { .. } => "the message of a chat",
    }
}

/// The part of a message that its event carries. A long message is not joined for it.
fn told(blocks: &[Block]) -> Arc<str> {
    if let [Block::Text { text }] = blocks {
        return event_text(text).into();
    }
    let mut told = String::new();
    for block in blocks {
        let Block::Text { text } = block else { continue };
        let room = limit::EVENT_TEXT_BYTES_MAX - told.len();
        told.push_str(&text[..text.floor_char_boundary(room)]);
        if text.len() > room {
            break;
        }
    }
    told.into()
}

#[cfg(test)]
mod tests;
