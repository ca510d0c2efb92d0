//! A chat chooses its agent, or begins anew.

use agentsvc_components::channel::ConversationId;
use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::{AgentId, Refusal};
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use super::list::ConversationView;
use super::receive::no_instance;
use super::{begin, error_codes, rules};
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change, find};
use crate::kernel::index;
use crate::session::strangers;
use crate::session::told::{self, SessionEvent};

/// A chat chooses the agent that answers it (`/agent`), or leaves that to the rules again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChooseAgent {
    /// Of which conversation.
    pub conversation: ConversationId,
    /// The name or the id of the agent, one of those that the instance offers; `None` chooses none.
    pub agent: Option<Box<str>>,
}

command! {
    write "choose_chat_agent" ChooseAgent => ConversationView, Root, |it, world| Answer::stored(choose(world, it))
}

/// The next message of a conversation begins a new session (`/new`), with every agent. The sessions so far stay,
/// but for those that strangers began: nothing would lead to them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RenewConversation(pub ConversationId);

command! {
    write "renew_conversation" RenewConversation => ConversationView, Root, |it, world|
        Answer::stored(renew(world, it.0))
}

/// The messages of a conversation ask for extended thinking from here on, or no longer (`/think`).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SetThinking {
    /// Of which conversation.
    pub conversation: ConversationId,
    /// Do they?
    pub thinking: bool,
}

command! {
    write "set_chat_thinking" SetThinking => ConversationView, Root, |it, world| Answer::stored(think(world, it))
}

/// The agents that the chats of an instance may choose, in the order of its rules; those that there are.
#[derive(Clone, Debug)]
pub struct OfferedAgents {
    /// The name of the instance.
    pub instance: Box<str>,
}

command! {
    read "offered_agents" OfferedAgents => Vec<(AgentId, Box<str>)>, Root, |it, world|
        Answer::Now(offered(world, &it.instance))
}

fn choose(
    world: &mut World,
    ChooseAgent { conversation: id, agent }: ChooseAgent,
) -> Result<ConversationView, Refusal> {
    let entity = find::<Conversation>(world, id)?;
    let instance = world.get::<Conversation>(entity).map(|its| its.instance.clone()).unwrap_or_default();
    let of = rules::of(world, &instance).ok_or_else(|| no_instance(&instance))?;
    let chosen = match agent {
        None => None,
        Some(word) => {
            let offered = rules::offered(world, &of);
            let found = rules::agent(world, &word).filter(|id| offered.contains(id));
            let unknown = || Refusal {
                field: Some("agent".to_owned()),
                ..Refusal::of(error_codes::CHANNEL_AGENT_UNKNOWN, "the channel does not offer this agent")
            };
            Some(found.ok_or_else(unknown)?)
        }
    };
    change(world, entity, |its: &mut Conversation| (its.agent, its.holder, its.diverging) = (chosen, None, 0));
    ConversationView::seen(world, id)
}

fn renew(world: &mut World, id: ConversationId) -> Result<ConversationView, Refusal> {
    let entity = find::<Conversation>(world, id)?;
    let sessions = world.get::<Conversation>(entity).map(|its| its.sessions.clone()).unwrap_or_default();
    // It goes with the session, and what waits there would be lost unseen.
    if sessions.iter().any(|its| strangers::is_busy(world, its.session)) {
        return Err(Refusal::busy("an answer is still being written here: wait for it, or stop it first", 5));
    }
    for its in &sessions {
        let is_there = index::session(world, its.session).is_some();
        if let Some(owner) = index::agent(world, its.agent).ok().filter(|_| is_there) {
            told::note(world, owner, its.session, SessionEvent::Reset { why: "the chat began a new session" });
        }
    }
    change(world, entity, |its: &mut Conversation| its.sessions.clear());
    for its in sessions {
        strangers::forget(world, its.session);
    }
    ConversationView::seen(world, id)
}

fn think(
    world: &mut World,
    SetThinking { conversation: id, thinking }: SetThinking,
) -> Result<ConversationView, Refusal> {
    let entity = find::<Conversation>(world, id)?;
    change(world, entity, |its: &mut Conversation| its.thinking = thinking);
    ConversationView::seen(world, id)
}

fn offered(world: &World, instance: &str) -> Result<Vec<(AgentId, Box<str>)>, Refusal> {
    let of = rules::of(world, instance).ok_or_else(|| no_instance(instance))?;
    let named = |id| Some((id, begin::name_of(world, id)?));
    Ok(rules::offered(world, &of).into_iter().filter_map(named).collect())
}
