//! Chats are read and listed.

use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::channel::message::ChatMessage;
use agentsvc_components::channel::pairing::{Pairing, PairingState};
use agentsvc_components::channel::rules::{ChannelInstance, InstanceRules};
use agentsvc_components::channel::send::Send;
use agentsvc_components::channel::{ChannelId, ChatMessageId, ConversationId, PairingId, SendId};
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::{AgentId, Refusal, Timestamp};
use bevy_ecs::prelude::{Entity, World};

use super::index::{Conversations, Sends};
use super::metrics::{ChannelCounts, Counts};
use crate::kernel::command::Place;
use crate::kernel::entities::{List, View, ViewPage};
use crate::kernel::index::id_of;
use crate::kernel::job;

/// What the world knows of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceView {
    /// Its id.
    pub id: ChannelId,
    /// Its rules.
    pub rules: InstanceRules,
    /// What happened in it since the daemon started.
    pub counts: Counts,
    /// Conversations that were let in.
    pub conversations: usize,
    /// Conversations of strangers.
    pub strangers: usize,
}

impl View for InstanceView {
    type Kind = ChannelInstance;
    /// The one of this name; `None` lists all.
    type Filter = Option<Box<str>>;
    const NAMES: [&'static str; 2] = ["get_channel_instance", "list_channel_instances"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        let rules = world.get::<ChannelInstance>(at)?.rules.clone();
        let all = world.resource::<Conversations>();
        let [conversations, strangers] = [true, false].map(|is_known| all.count(&rules.name, is_known));
        let counts = world.resource::<ChannelCounts>().of(&rules.name);
        Some(Self { id: id_of(world, at), rules, counts, conversations, strangers })
    }

    fn passes(&self, filter: &Option<Box<str>>) -> bool {
        filter.as_ref().is_none_or(|name| *name == self.rules.name)
    }
}

/// What the world knows of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationView {
    /// Its id.
    pub id: ConversationId,
    /// Its state.
    pub conversation: Conversation,
    /// Since when the chat is paired.
    pub paired_at: Option<Timestamp>,
}

/// Which conversations a list shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationFilter {
    /// Those of this instance.
    pub instance: Option<Box<str>>,
    /// Those that this agent has answered.
    pub agent: Option<AgentId>,
}

impl View for ConversationView {
    type Kind = Conversation;
    type Filter = ConversationFilter;
    const NAMES: [&'static str; 2] = ["get_conversation", "list_conversations"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        let conversation = world.get::<Conversation>(at)?.clone();
        let paired_at = super::pair::paired_at(world, &conversation.instance, &conversation.chat);
        Some(Self { id: id_of(world, at), conversation, paired_at })
    }

    fn passes(&self, filter: &ConversationFilter) -> bool {
        let its = &self.conversation;
        filter.instance.as_ref().is_none_or(|name| *name == its.instance)
            && filter.agent.is_none_or(|agent| its.session_with(agent).is_some())
    }

    fn page(world: &World, list: &List<Self>) -> Result<ViewPage<Self>, Refusal> {
        let all = world.resource::<Conversations>();
        if let Some(agent) = list.filter.agent {
            let found = all.of_agent(agent).filter(|id| list.after.is_none_or(|after| *id > after));
            let mut found: Vec<_> = found.filter_map(|id| Some((id, all.get(id)?))).collect();
            found.sort_unstable_by_key(|(id, _)| *id);
            return Ok(list.filled(world, None, found.into_iter()));
        }
        let total = match &list.filter.instance {
            Some(name) => all.count(name, true) + all.count(name, false),
            None => all.len(),
        };
        Ok(list.filled(world, Some(total), all.after(list.after)))
    }
}

/// What the world knows of a message of a chat that is not answered yet.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatMessageView {
    /// Its id.
    pub id: ChatMessageId,
    /// Its state.
    pub message: ChatMessage,
    /// The name of the instance.
    pub instance: Box<str>,
    /// The chat.
    pub chat: Box<str>,
}

impl View for ChatMessageView {
    type Kind = ChatMessage;
    /// Those of this instance; `None` lists all.
    type Filter = Option<Box<str>>;
    const NAMES: [&'static str; 2] = ["get_chat_message", "list_chat_messages"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        let message = world.get::<ChatMessage>(at)?.clone();
        let of = crate::kernel::entities::state::<Conversation>(world, message.conversation)?;
        let (instance, chat) = (of.instance.clone(), of.chat.clone());
        Some(Self { id: id_of(world, at), message, instance, chat })
    }

    fn passes(&self, filter: &Option<Box<str>>) -> bool {
        filter.as_ref().is_none_or(|name| *name == self.instance)
    }
}

/// What the world knows of an outgoing message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendView {
    /// Its id.
    pub id: SendId,
    /// Its state.
    pub send: Send,
    /// The chat.
    pub chat: Box<str>,
    /// When it is tried next; `None` when it has ended.
    pub next_try_at: Option<Timestamp>,
}

/// Which outgoing messages a list shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SendFilter {
    /// All, in the order of creation.
    #[default]
    All,
    /// Those of an instance, the newest first.
    Instance(Box<str>),
    /// Those of a conversation, the newest first.
    Conversation(ConversationId),
    /// Those of an agent, the newest first.
    Agent(AgentId),
}

impl View for SendView {
    type Kind = Send;
    type Filter = SendFilter;
    const NAMES: [&'static str; 2] = ["get_chat_send", "list_chat_sends"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        let (id, send): (SendId, _) = (id_of(world, at), world.get::<Send>(at)?.clone());
        let of = crate::kernel::entities::state::<Conversation>(world, send.conversation);
        let chat = of.map(|of| of.chat.clone()).unwrap_or_default();
        Some(Self { id, send, chat, next_try_at: job::due(world, JobId(id.0)) })
    }

    fn passes(&self, filter: &SendFilter) -> bool {
        match filter {
            SendFilter::All => true,
            SendFilter::Instance(name) => self.send.instance == *name,
            SendFilter::Conversation(id) => self.send.conversation == *id,
            SendFilter::Agent(agent) => self.send.agent == Some(*agent),
        }
    }

    fn page(world: &World, list: &List<Self>) -> Result<ViewPage<Self>, Refusal> {
        let all = world.resource::<Sends>();
        let found: Box<dyn Iterator<Item = SendId> + '_> = match &list.filter {
            SendFilter::All => return Ok(list.filled(world, Some(all.len()), all.after(list.after))),
            SendFilter::Instance(name) => Box::new(all.of_instance(name, list.after)),
            SendFilter::Conversation(id) => Box::new(all.of(*id, list.after)),
            SendFilter::Agent(agent) => Box::new(all.of_agent(*agent, list.after)),
        };
        Ok(list.filled(world, None, found.filter_map(|id| Some((id, all.get(id)?)))))
    }
}

/// What the world knows of a pairing. The code of an offer is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairingView {
    /// Its id.
    pub id: PairingId,
    /// The name of the instance.
    pub instance: Box<str>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The chat that was let in; `None` while the code waits.
    pub chat: Option<Box<str>>,
    /// Who, for people.
    pub name: Option<Box<str>>,
    /// Since when the chat is let in.
    pub paired_at: Option<Timestamp>,
    /// When the code is void.
    pub expires_at: Option<Timestamp>,
}

impl View for PairingView {
    type Kind = Pairing;
    /// Those of this instance; `None` lists all.
    type Filter = Option<Box<str>>;
    const NAMES: [&'static str; 2] = ["get_pairing", "list_pairings"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        let (id, it) = (id_of(world, at), world.get::<Pairing>(at)?.clone());
        let (chat, name, paired_at, expires_at) = match it.state {
            PairingState::Offered { expires_at, .. } => (None, None, None, Some(expires_at)),
            PairingState::Paired { chat, name, at } => (Some(chat), Some(name), Some(at), None),
        };
        let Pairing { instance, created_at, .. } = it;
        Some(Self { id, instance, created_at, chat, name, paired_at, expires_at })
    }

    fn passes(&self, filter: &Option<Box<str>>) -> bool {
        filter.as_ref().is_none_or(|name| *name == self.instance)
    }
}
