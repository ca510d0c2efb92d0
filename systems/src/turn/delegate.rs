//! One agent asks another through `agent_send`: the turn of the other answers the tool call of the first. The link is
//! stored with both turns, so that a crash leaves no caller waiting for nobody, and no message is sent twice.

use agentsvc_components::turn::error_codes;
use std::collections::{BTreeSet, VecDeque};

use bevy_ecs::prelude::{Entity, Resource, World};
use hashbrown::HashSet;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::{InjectionFound, Taint, UntrustedContent};
use agentsvc_components::session::Session;
use agentsvc_components::turn::outcome::{ToolEnd, ToolStatus};
use agentsvc_components::turn::stream::{StreamEvent, StreamItem};
use agentsvc_components::turn::{Origin, ParentLink, PendingState, Turn, TurnEnd, TurnRequest};
use agentsvc_components::{AgentId, Refusal, RefusalKind, SessionId, TurnId};

use super::message::{NewMessage, take, take_hidden};
use super::{cascade, reading, stop, tools};
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::Emit;
use crate::turn::tool_result;
use crate::{agent, session, taint};

/// Open turns that agents began through `agent_send`, by the agent and the session that began them. An entry lives as long as its
/// turn.
#[derive(Resource, Default)]
pub(crate) struct Children(BTreeSet<(AgentId, SessionId, Entity)>);

impl Children {
    /// A turn began, or was restored.
    pub(super) fn insert(&mut self, link: &ParentLink, child: Entity) {
        self.0.insert((link.agent, link.session, child));
    }

    /// All of them, each with the agent that began it.
    pub(crate) fn all(&self) -> BTreeSet<(AgentId, Entity)> {
        self.0.iter().map(|(agent, _, child)| (*agent, *child)).collect()
    }

    /// A turn ended.
    pub(super) fn remove(&mut self, link: &ParentLink, child: Entity) {
        self.0.remove(&(link.agent, link.session, child));
    }
}

/// The open turns that `agent` began through `agent_send`; only those of one of its sessions, or of all.
pub(super) fn children(world: &World, agent: AgentId, session: Option<SessionId>) -> Vec<Entity> {
    let from = (agent, session.unwrap_or(SessionId(Uuid::nil())), Entity::from_bits(1));
    let all = world.resource::<Children>().0.range(from..);
    let its = all.take_while(|(by, of, _)| *by == agent && session.is_none_or(|session| *of == session));
    its.map(|(.., child)| *child).collect()
}

/// Sends a message from a turn to another agent. The tool call that asks for it is settled by the world from here on:
/// with the answer, or at once when nobody wants to wait.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SendToAgent {
    /// The attempt of the turn that sends.
    pub from: Attempt,
    /// The log row of the tool call.
    pub index: u32,
    /// To whom: an id or a name.
    pub to: String,
    /// In which of the receiver's sessions; `None` is its current one.
    pub session: Option<SessionId>,
    /// What is said.
    pub text: String,
    /// Wait for the answer?
    pub wait: bool,
    /// What the scanner found in it.
    pub found: Option<Box<InjectionFound>>,
}

/// A message on its way to another agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentToAgent {
    /// The turn that will answer.
    pub turn: TurnId,
    /// In which session.
    pub session: SessionId,
}

command! {
    write "send_to_agent" SendToAgent => SentToAgent, Id(|it| it.from.job.0), |it, world|
        Answer::stored(send(world, it, true))
}

/// Sends a message from within a tool call that goes on: what carries the call out settles it. The answer is not awaited.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SendWithinCall(pub SendToAgent);

command! {
    write "send_within_call" SendWithinCall => SentToAgent, Id(|it| it.0.from.job.0), |it, world|
        Answer::stored(send(world, SendToAgent { wait: false, ..it.0 }, false))
}

/// Sends the message. `settles` the call that asks for it?
fn send(world: &mut World, command: SendToAgent, settles: bool) -> Result<SentToAgent, Refusal> {
    let parent = waiting_parent(world, command.from, command.index)?;
    let (owner, home) = (parent.agent, parent.session);
    let to = receiver(world, &command.to)?;
    let receiver = id_of::<AgentId>(world, to);
    let read = taint::of(world, parent.entity);
    let user = taint::user_of(world, parent.entity);
    // Sessions of other agents hold what others said: neither outsiders nor one of several users reach them.
    let is_apart = !read.of_outsiders().is_none() || user.is_some();
    let target = match command.session {
        None if is_apart => None,
        None => world.get::<Agent>(to).map(|agent| agent.current),
        Some(_) if is_apart => return Err(out_of_reach()),
        Some(id) => session::owned_or_absent(world, to, id)?,
    };
    if let Some(target) = target.filter(|_| command.wait)
        && waits_for(world, target, home)
    {
        let text = "the two sessions would wait for each other";
        return Err(Refusal::conflict(text).with_code(error_codes::AGENT_CYCLE));
    }
    if depth(world, &parent.entity) >= limit::AGENT_CHAIN_MAX {
        let text = format!("the limit of {} nested agent calls is reached", limit::AGENT_CHAIN_MAX);
        return Err(Refusal::conflict(text).with_code(error_codes::AGENT_CHAIN_TOO_LONG));
    }
    let sender = id_of::<AgentId>(world, owner);
    let so_deep = world.get::<Turn>(parent.entity).map_or(0, |turn| turn.depth);
    cascade::check(world, sender, so_deep)?;
    let link = ParentLink {
        turn: TurnId(command.from.job.0),
        agent: sender,
        session: id_of(world, home),
        index: command.wait.then_some(command.index),
        began_in: taint::began_in(world, parent.entity),
    };
    let origin = Origin::Agent { parent: TurnId(command.from.job.0) };
    let taint = read.with(Taint::AGENT);
    let found = command.found.map(|found| *found).into_iter().collect();
    let request = user.map(|user| Box::new(TurnRequest { user: Some(user), ..TurnRequest::default() }));
    let message = NewMessage { origin, request, taint, found, ..NewMessage::text(command.text) };
    let (_, taken) = match is_apart {
        true => take_hidden(world, to, message, Some(link))?,
        false => take(world, receiver, command.session, message, false, Some(link))?,
    };
    cascade::sent(world, sender, so_deep);
    if settles {
        tools::adopt(world, parent.entity, command.from, command.index, taken.turn);
    }
    if settles && !command.wait {
        let answer = format!("Sent. task_id: {}, session_id: {}. The reply is not awaited.", taken.turn, taken.session);
        settle(world, parent.entity, command.index, answer, ToolStatus::Ok);
    }
    Ok(SentToAgent { turn: taken.turn, session: taken.session })
}

/// The agent that a message is for. One of a user is refused for good what it does not find here: it sends nothing to other
/// nodes.
fn receiver(world: &World, name: &str) -> Result<Entity, Refusal> {
    agent::reached_as(world, name).map_err(|missing| match agent::check_shared(world, "agents of other nodes") {
        Ok(()) => missing,
        Err(_) => Refusal::new(RefusalKind::Forbidden, missing.message),
    })
}

fn out_of_reach() -> Refusal {
    let text = "this conversation was begun by a stranger or for one of several users, so it reaches no session of other \
                agents; leave session_id out";
    Refusal { field: Some("session_id".to_owned()), ..Refusal::new(RefusalKind::Forbidden, text) }
}

/// The turn that a tool call belongs to.
pub(super) struct Parent {
    pub(super) entity: Entity,
    pub(super) agent: Entity,
    session: Entity,
}

/// The turn of `from`, while its call at `index` still waits for a result.
pub(super) fn waiting_parent(world: &World, from: Attempt, index: u32) -> Result<Parent, Refusal> {
    let gone = || Refusal::conflict("the sending turn has ended").with_code(error_codes::TURN_ENDED);
    let entity = index::turn(world, TurnId(from.job.0)).ok_or_else(gone)?;
    let turn =
        world.get::<Turn>(entity).filter(|turn| turn.attempt == from.number && !turn.cancelled).ok_or_else(gone)?;
    if stop::is_going(world, entity) {
        return Err(gone());
    }
    let waits = turn.pending.iter().any(|pending| pending.index == index && pending.state == PendingState::Out);
    if waits { Ok(Parent { entity, agent: turn.agent, session: turn.session }) } else { Err(gone()) }
}

/// Would an answer of `session` wait for `for_session`, through the turns that its running turn waits for?
fn waits_for(world: &World, session: Entity, for_session: Entity) -> bool {
    let (mut queue, mut seen) = (VecDeque::from([session]), HashSet::new());
    while let Some(session) = queue.pop_front() {
        if session == for_session {
            return true;
        }
        if !seen.insert(session) || seen.len() > limit::PAGE_SCAN_MAX {
            continue;
        }
        let head = world.get::<Session>(session).and_then(|session| session.head);
        let Some(head) = head.and_then(|head| world.get::<Turn>(head)) else { continue };
        for pending in &head.pending {
            if let PendingState::Adopted(child) = pending.state {
                let child = index::turn(world, child).and_then(|child| world.get::<Turn>(child));
                queue.extend(child.map(|child| child.session));
            }
        }
    }
    false
}

/// How many turns wait for `turn`, one for the other.
fn depth(world: &World, turn: &Entity) -> usize {
    let (mut at, mut depth) = (*turn, 0);
    while let Some(link) = world.get::<Turn>(at).and_then(|turn| turn.link.as_deref())
        && depth < limit::AGENT_CHAIN_MAX
    {
        depth += 1;
        let Some(parent) = index::turn(world, link.turn) else { break };
        at = parent;
    }
    depth
}

/// A turn has ended: the call that waits for it gets its answer.
pub(super) fn answer_parent(
    world: &mut World,
    link: ParentLink,
    (child, taint): (TurnId, Taint),
    end: TurnEnd,
    text: String,
) {
    let Some(index) = link.index else { return };
    let Some(parent) = index::turn(world, link.turn) else { return };
    let is_awaited = world.get::<Turn>(parent).is_some_and(|turn| {
        turn.pending.iter().any(|pending| pending.index == index && pending.state == PendingState::Adopted(child))
    });
    if is_awaited {
        let status = if end == TurnEnd::Done { ToolStatus::Ok } else { ToolStatus::Error };
        let text = match end {
            TurnEnd::Done | TurnEnd::Failed => text,
            TurnEnd::Stopped => format!("The other agent was stopped. It had said: {text}"),
            TurnEnd::Interrupted => format!("The other agent was interrupted. It had said: {text}"),
        };
        reading::settle_read(world, parent, index, text, status, (taint.with(Taint::AGENT), "another agent"));
    }
}

/// Settles a call that the world answers itself, and shows it to the session's subscribers.
pub(super) fn settle(world: &mut World, entity: Entity, index: u32, content: String, status: ToolStatus) {
    settle_with(world, entity, index, content, status, None);
}

/// The same, with what the result brings into the turn.
pub(super) fn settle_with(
    world: &mut World,
    entity: Entity,
    index: u32,
    content: String,
    status: ToolStatus,
    brought: Option<Box<UntrustedContent>>,
) {
    let Some(turn) = world.get::<Turn>(entity) else { return };
    let Some(call) = turn.pending.iter().find(|pending| pending.index == index).map(|pending| pending.call.clone())
    else {
        return;
    };
    let (ordinal, session) = (turn.ordinal, id_of::<SessionId>(world, turn.session));
    let event = StreamEvent::ToolResult { tool: call.name.clone(), input: call.input.clone() };
    world.effect(StreamItem { session, turn: id_of(world, entity), event });
    let (content, whole) = tool_result::fit(content, ordinal, index);
    tools::accept(world, entity, ToolEnd { index, call, content, whole, notice: None, brought, status });
}

/// After a restart: a call whose answering turn is not there any more would wait for ever.
pub(super) fn settle_orphans(world: &mut World, entity: Entity) {
    let Some(turn) = world.get::<Turn>(entity) else { return };
    let id = id_of::<TurnId>(world, entity);
    let is_orphan = |state| match state {
        PendingState::Adopted(by) => index::turn(world, by).is_none() && !reading::is_scan(world, id, by),
        _ => false,
    };
    let orphans: Vec<u32> =
        turn.pending.iter().filter(|pending| is_orphan(pending.state)).map(|pending| pending.index).collect();
    for index in orphans {
        let text = "Unknown: the turn that was to reply no longer exists.".to_owned();
        settle(world, entity, index, text, ToolStatus::Unknown);
    }
}
