//! A whole conversation comes with one request (spec 1, OpenAI-compatible endpoints).
//!
//! It runs in a hidden session: one that no list, count or lookup shows. Its rows are written in the step that makes
//! it, and it goes in the commit that ends its turn, so that no crash leaves one behind: what the next start finds of
//! it is removed, for nobody waits for that answer any more. Or its end goes on in a session that stays.

use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::Session;
use agentsvc_components::session::message::{Block, ChatMessage, ToolCall};
use agentsvc_components::turn::outcome::ModelAnswer;
use agentsvc_components::turn::trace::StepStatus;
use agentsvc_components::turn::{Origin, PendingState, Turn, TurnRequest};
use agentsvc_components::{AgentId, Refusal, SessionId};

use super::finish::{End, finish};
use super::message::{self, MessageTaken, NewTurn, Opening, TurnReply};
use super::trace::{self, Ended};
use super::{Waiting, stop};
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, Index, id_of};
use crate::session;

/// Where a conversation takes place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConversationTarget {
    /// In a session of its own under this new id, which goes with the turn.
    Hidden(SessionId),
    /// In a session that stays.
    Kept {
        /// Which; made when there is none.
        session: SessionId,
        /// The label of a session that is made, unless another one bears it.
        label: Option<Box<str>>,
    },
}

/// Messages of one request, and what is asked beside them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Conversation {
    /// To whom.
    pub agent: AgentId,
    /// Where.
    pub venue: ConversationTarget,
    /// The messages, oldest first; the turn answers the last. Not empty, and checked by the caller.
    pub messages: Vec<ChatMessage>,
    /// Where it comes from.
    pub origin: Origin,
    /// What is asked beside it.
    pub request: Option<Box<TurnRequest>>,
}

/// Begins a conversation and waits for the turn's end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SendConversation(pub Conversation);

command! {
    write "send_conversation" SendConversation => TurnReply, Id(|it| it.0.agent.0), |it, world| {
        match take(world, it.0, false) {
            Ok((entity, _)) => Answer::Later(Box::new(move |world, slot| {
                world.resource_mut::<Waiting>().0.get().insert(entity, slot);
            })),
            Err(refusal) => Answer::Now(Err(refusal)),
        }
    }
}

/// Begins a conversation and waits only until it is safe; the turn is watched through the session's stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PostConversation(pub Conversation);

command! {
    write "post_conversation" PostConversation => MessageTaken, Id(|it| it.0.agent.0), |PostConversation(it), world|
        Answer::stored(take(world, it, true).map(|(_, taken)| taken))
}

/// Stops the turn of a hidden session, and with it the session: its only reader has gone.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct StopConversation(pub SessionId);

command! {
    /// Was there one?
    write "stop_conversation" StopConversation => bool, Id(|it| it.0.0), |it, world| {
        let hidden = index::session(world, it.0).and_then(|entity| world.get::<Session>(entity));
        let turn = hidden.filter(|session| session.ephemeral).and_then(|session| session.head);
        if let Some(turn) = turn {
            let owner = world.get::<Turn>(turn).map(|turn| turn.agent);
            stop::stop(world, turn);
            if let Some(owner) = owner.map(|owner| id_of(world, owner)) {
                stop::stop_children(world, owner, Some(it.0));
            }
        }
        Answer::Stored(turn.is_some())
    }
}

fn take(world: &mut World, command: Conversation, streaming: bool) -> Result<(Entity, MessageTaken), Refusal> {
    let Conversation { agent, venue, messages, origin, request } = command;
    let owner = index::agent(world, agent)?;
    message::check(world, owner)?;
    if messages.is_empty() {
        return Err(Refusal::bad_field("messages", "messages must not be empty"));
    }
    let session = match venue {
        ConversationTarget::Hidden(id) if index::session(world, id).is_some() => {
            return Err(Refusal::conflict("the session already exists"));
        }
        ConversationTarget::Hidden(id) => session::spawn_hidden(world, owner, id),
        ConversationTarget::Kept { session: id, label } => match session::owned_or_absent(world, owner, id)? {
            Some(found) => {
                message::check_inbox(world, found)?;
                found
            }
            None => {
                // The name of a user stands in its label.
                if label.is_none() {
                    session::check_chosen(id)?;
                }
                session::admit(world, Some(owner))?;
                let label = label.filter(|label| world.resource::<Index>().labelled(owner, label).is_none());
                session::spawn(world, owner, Some(id), label)
            }
        },
    };
    // Results of the client's own tools: nobody here vouches for them.
    let is_result = |block: &Block| matches!(block, Block::ToolResult { .. });
    let has_results = messages.iter().flat_map(|message| &message.blocks).any(is_result);
    let taint = if has_results { Taint::TOOL } else { Taint::NONE };
    let opening = Opening::Messages(messages);
    let turn = NewTurn { opening, origin, request, streaming, depth: 0, link: None, taint, repeats: None };
    Ok(message::begin(world, owner, session, turn))
}

/// An answer that asks for a tool of the client: it ends the turn, and the client runs the tool. The agent's own calls of
/// the same answer did not run and are left out. `None` for every other answer.
pub(super) fn for_client(world: &World, turn: Entity, answer: &ModelAnswer) -> Option<ModelAnswer> {
    let request = world.get::<Turn>(turn)?.request.clone().filter(|request| !request.tools.is_empty())?;
    let is_theirs = |call: &ToolCall| request.tools.iter().any(|tool| *tool.name == *call.name);
    let asks = answer.blocks.iter().any(|block| matches!(block, Block::ToolCall(call) if is_theirs(call)));
    let kept = |block: &Block| !matches!(block, Block::ToolCall(call) if !is_theirs(call));
    asks.then(|| ModelAnswer {
        blocks: answer.blocks.iter().filter(|block| kept(block)).cloned().collect(),
        ..answer.clone()
    })
}

/// Ends what a crash left of hidden sessions, before any of their turns goes on: nobody waits for those answers any more.
pub(crate) fn sweep_hidden(world: &mut World) {
    let ids: Vec<SessionId> = world.resource::<Index>().hidden().collect();
    for entity in ids.into_iter().filter_map(|id| index::session(world, id)).collect::<Vec<_>>() {
        // The turns of one that was removed end step by step.
        if session::is_leaving(world, entity) {
            continue;
        }
        match world.get::<Session>(entity).and_then(|session| session.head) {
            // What a workflow or another turn began goes on: the run or the turn waits for it.
            Some(turn) if world.get::<Turn>(turn).is_some_and(|turn| turn.origin.is_awaited_by_world()) => {}
            Some(turn) => give_up(world, turn),
            None => session::discard(world, entity, "the daemon was restarted"),
        }
    }
}

/// Ends the turn of a hidden session, and those that it began. Nobody knows of a tool that was out whether it took effect.
fn give_up(world: &mut World, entity: Entity) {
    let Some(mut turn) = world.get_mut::<Turn>(entity) else { return };
    let (agent, session) = (turn.agent, turn.session);
    let pending = std::mem::take(&mut turn.pending);
    for tool in pending.into_iter().filter(|tool| tool.state == PendingState::Out) {
        trace::step(world, entity, Ended::tool(&tool.call.name, tool.sent_at, StepStatus::Unknown));
    }
    let (agent, session) = (id_of(world, agent), id_of(world, session));
    finish(world, entity, End::Stopped(None));
    stop::stop_children(world, agent, Some(session));
}
