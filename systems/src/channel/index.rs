//! Where chats are found: instances by name; conversations by chat, by agent and by when something last happened in them;
//! messages by conversation, the waiting ones by when they are due; sends by conversation, by agent and by their end.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::channel::message::{ChatMessage, ChatMessageState};
use agentsvc_components::channel::pairing::{Pairing, PairingState};
use agentsvc_components::channel::rules::ChannelInstance;
use agentsvc_components::channel::send::{Send, SendState};
use agentsvc_components::channel::{ChannelId, ChatMessageId, ConversationId, PairingId, SendId};
use agentsvc_components::{AgentId, Timestamp};
use uuid::Uuid;

use super::limits;
use crate::kernel::entities::{Entities, Mirrored, Places, Put, indexed, put_under};

/// Every instance.
pub(super) type Instances = Entities<ChannelInstance>;
/// Every conversation.
pub(super) type Conversations = Entities<Conversation>;
/// Every message that is not answered yet.
pub(super) type Messages = Entities<ChatMessage>;
/// Every send.
pub(super) type Sends = Entities<Send>;
/// Every pairing.
pub(super) type Pairings = Entities<Pairing>;

indexed!(ChannelInstance: InstancePlaces, "channel");
indexed!(Conversation: ConversationPlaces, "conversation");
indexed!(ChatMessage: MessagePlaces, "message of a chat");
indexed!(Send: SendPlaces, "message to a chat");
indexed!(Pairing: PairingPlaces, "pairing");

/// Instances by name.
#[derive(Debug, Default, PartialEq)]
pub struct InstancePlaces(BTreeMap<Box<str>, ChannelId>);

impl InstancePlaces {
    pub(super) fn named(&self, name: &str) -> Option<ChannelId> {
        self.0.get(name).copied()
    }
}

impl Mirrored<ChannelInstance> for InstancePlaces {
    fn place(&mut self, id: ChannelId, it: &ChannelInstance, is_in: bool) {
        self.0.put((it.rules.name.clone(), id), is_in);
    }
}

/// Instance, chat and thread.
type ChatKey = (Box<str>, Box<str>, Option<Box<str>>);
/// Conversations, the one in which nothing happened for longest first.
type Ages = BTreeSet<(Timestamp, ConversationId)>;

/// Conversations by all that is asked of them.
#[derive(Debug, Default, PartialEq)]
pub struct ConversationPlaces {
    /// By instance, chat and thread.
    by_chat: BTreeMap<ChatKey, ConversationId>,
    /// Of each instance, apart those that were let in and strangers, the one in which nothing happened for longest first.
    by_age: BTreeMap<(Box<str>, bool), Ages>,
    by_agent: BTreeSet<(AgentId, Timestamp, ConversationId)>,
    /// Those of them that are marked as trusted: no flood of others hides them.
    trusted: BTreeSet<(AgentId, Timestamp, ConversationId)>,
    /// Those in which only strangers wrote.
    strangers: Ages,
    /// The same by the agents that they have sessions with.
    strangers_of: BTreeMap<AgentId, Ages>,
}

impl ConversationPlaces {
    pub(super) fn find(&self, instance: &str, chat: &str, thread: Option<&str>) -> Option<ConversationId> {
        self.by_chat.get(&(instance.into(), chat.into(), thread.map(Into::into))).copied()
    }

    /// How many there are of an instance: those that were let in, or strangers.
    pub(super) fn count(&self, instance: &str, is_known: bool) -> usize {
        self.by_age.get(&(instance.into(), is_known)).map_or(0, BTreeSet::len)
    }

    /// The same, the one in which nothing happened for longest first.
    pub(super) fn oldest(&self, instance: &str, is_known: bool) -> impl Iterator<Item = ConversationId> + '_ {
        self.by_age.get(&(instance.into(), is_known)).into_iter().flatten().map(|(_, id)| *id)
    }

    /// The conversations of an agent, the newest first.
    pub(super) fn of_agent(&self, agent: AgentId) -> impl Iterator<Item = ConversationId> + '_ {
        newest(&self.by_agent, agent)
    }

    /// Those of them that are trusted, the newest first.
    pub(super) fn trusted_of_agent(&self, agent: AgentId) -> impl Iterator<Item = ConversationId> + '_ {
        newest(&self.trusted, agent)
    }

    /// Those in which only strangers wrote, the one in which nothing happened for longest first.
    pub(super) fn oldest_of_strangers(&self) -> impl DoubleEndedIterator<Item = (Timestamp, ConversationId)> + '_ {
        self.strangers.iter().copied()
    }

    /// Those of them that have a session with an agent, likewise.
    pub(super) fn strangers_of(&self, agent: AgentId) -> impl Iterator<Item = (Timestamp, ConversationId)> + '_ {
        self.strangers_of.get(&agent).into_iter().flatten().copied()
    }

    /// The agents that they have sessions with.
    pub(super) fn agents_of_strangers(&self) -> impl Iterator<Item = AgentId> + '_ {
        self.strangers_of.keys().copied()
    }

    /// The conversations of a chat: one for each of its threads.
    pub(super) fn of_chat(&self, instance: &str, chat: &str) -> impl Iterator<Item = ConversationId> + '_ {
        let first: ChatKey = (instance.into(), chat.into(), None);
        let (instance, chat) = (first.0.clone(), first.1.clone());
        self.by_chat.range(first..).take_while(move |(of, _)| of.0 == instance && of.1 == chat).map(|(_, id)| *id)
    }
}

fn newest(
    of: &BTreeSet<(AgentId, Timestamp, ConversationId)>,
    agent: AgentId,
) -> impl Iterator<Item = ConversationId> + '_ {
    let all = (agent, Timestamp(i64::MIN), FIRST_CONVERSATION)..=(agent, Timestamp(i64::MAX), LAST_CONVERSATION);
    of.range(all).rev().map(|(.., id)| *id)
}

const FIRST_CONVERSATION: ConversationId = ConversationId(Uuid::nil());
const LAST_CONVERSATION: ConversationId = ConversationId(Uuid::max());

impl Mirrored<Conversation> for ConversationPlaces {
    fn place(&mut self, id: ConversationId, it: &Conversation, is_in: bool) {
        self.by_chat.put(((it.instance.clone(), it.chat.clone(), it.thread.clone()), id), is_in);
        put_under(&mut self.by_age, (it.instance.clone(), it.is_known), (it.last_at, id), is_in);
        if it.is_strangers {
            self.strangers.put((it.last_at, id), is_in);
        }
        for its in &it.sessions {
            if it.is_strangers {
                put_under(&mut self.strangers_of, its.agent, (it.last_at, id), is_in);
            }
            self.by_agent.put((its.agent, it.last_at, id), is_in);
            if it.is_trusted {
                self.trusted.put((its.agent, it.last_at, id), is_in);
            }
        }
    }
}

/// Messages by conversation and by when they are due.
#[derive(Debug, Default, PartialEq)]
pub struct MessagePlaces {
    of: BTreeSet<(ConversationId, ChatMessageId)>,
    due: BTreeSet<(Timestamp, ChatMessageId)>,
    commands: BTreeSet<ChatMessageId>,
    /// Those whose turns are open.
    answering: usize,
    /// Those of them whose turns are stopped some time.
    deadlines: BTreeSet<(Timestamp, ChatMessageId)>,
    /// How many there are of each instance, and their bytes.
    shares: BTreeMap<Box<str>, (usize, usize)>,
}

impl MessagePlaces {
    /// Those of a conversation, the oldest first.
    pub(super) fn of(&self, id: ConversationId) -> impl DoubleEndedIterator<Item = ChatMessageId> + '_ {
        let all = (id, ChatMessageId(Uuid::nil()))..=(id, ChatMessageId(Uuid::max()));
        self.of.range(all).map(|(_, message)| *message)
    }

    /// How many there are of an instance, and their bytes.
    pub(super) fn share(&self, instance: &str) -> (usize, usize) {
        self.shares.get(instance).copied().unwrap_or_default()
    }

    /// The one that is due first.
    pub(super) fn first_due(&self) -> Option<(Timestamp, ChatMessageId)> {
        self.due.first().copied()
    }

    /// Those that wait, by when they are due.
    pub(super) fn waiting(&self) -> impl DoubleEndedIterator<Item = (Timestamp, ChatMessageId)> + '_ {
        self.due.iter().copied()
    }

    /// How many turns are open.
    pub(super) const fn answering(&self) -> usize {
        self.answering
    }

    /// Those whose turns are stopped some time, the first one first.
    pub(super) fn deadlines(&self) -> impl DoubleEndedIterator<Item = (Timestamp, ChatMessageId)> + '_ {
        self.deadlines.iter().copied()
    }

    /// Those that are commands, the oldest first.
    pub(super) fn commands(&self) -> impl Iterator<Item = ChatMessageId> + '_ {
        self.commands.iter().copied()
    }
}

impl Places<ChatMessage> for MessagePlaces {
    fn insert(&mut self, id: ChatMessageId, it: &ChatMessage) {
        self.of.insert((it.conversation, id));
        let (count, bytes) = self.shares.entry(it.instance.clone()).or_default();
        (*count, *bytes) = (*count + 1, *bytes + it.bytes());
        match &it.state {
            ChatMessageState::Waiting { due } => {
                self.due.insert((*due, id));
            }
            ChatMessageState::Command(_) => {
                self.commands.insert(id);
            }
            ChatMessageState::Checking { deadline, .. } | ChatMessageState::Answering { deadline, .. } => {
                self.answering += 1;
                self.deadlines.extend(deadline.map(|at| (at, id)));
            }
        }
    }

    fn remove(&mut self, id: ChatMessageId, it: &ChatMessage) {
        self.of.remove(&(it.conversation, id));
        if let Some((count, bytes)) = self.shares.get_mut(&it.instance) {
            (*count, *bytes) = (count.saturating_sub(1), bytes.saturating_sub(it.bytes()));
            if *count == 0 {
                self.shares.remove(&it.instance);
            }
        }
        match &it.state {
            ChatMessageState::Waiting { due } => {
                self.due.remove(&(*due, id));
            }
            ChatMessageState::Command(_) => {
                self.commands.remove(&id);
            }
            ChatMessageState::Checking { deadline, .. } | ChatMessageState::Answering { deadline, .. } => {
                self.answering -= 1;
                if let Some(at) = deadline {
                    self.deadlines.remove(&(*at, id));
                }
            }
        }
    }
}

/// Sends by conversation, by agent and by their end.
#[derive(Debug, Default, PartialEq)]
pub struct SendPlaces {
    of: BTreeSet<(ConversationId, SendId)>,
    by_agent: BTreeSet<(AgentId, SendId)>,
    by_instance: BTreeSet<(Box<str>, SendId)>,
    by_key: BTreeMap<Uuid, SendId>,
    ended: BTreeMap<Box<str>, BTreeSet<(Timestamp, SendId)>>,
    open: usize,
    /// How many are open of each instance, and their bytes.
    open_of: BTreeMap<Box<str>, (usize, usize)>,
}

/// The first of all ids of sends.
const FIRST: SendId = SendId(Uuid::nil());
/// The last of all ids of sends.
const LAST: SendId = SendId(Uuid::max());

impl SendPlaces {
    /// Those of a conversation, the newest first, before `before`.
    pub(super) fn of(&self, id: ConversationId, before: Option<SendId>) -> impl Iterator<Item = SendId> + '_ {
        self.of.range((id, FIRST)..(id, before.unwrap_or(LAST))).rev().map(|(_, send)| *send)
    }

    /// Those of an agent, likewise.
    pub(super) fn of_agent(&self, id: AgentId, before: Option<SendId>) -> impl Iterator<Item = SendId> + '_ {
        self.by_agent.range((id, FIRST)..(id, before.unwrap_or(LAST))).rev().map(|(_, send)| *send)
    }

    /// Those of an instance, likewise.
    pub(super) fn of_instance(&self, name: &str, before: Option<SendId>) -> impl Iterator<Item = SendId> + '_ {
        let (from, to) = ((Box::from(name), FIRST), (Box::from(name), before.unwrap_or(LAST)));
        self.by_instance.range(from..to).rev().map(|(_, send)| *send)
    }

    /// The one that was asked for under a key.
    pub(super) fn by_key(&self, key: Uuid) -> Option<SendId> {
        self.by_key.get(&key).copied()
    }

    /// How many of an instance have ended, and the one that ended first.
    pub(super) fn ended(&self, instance: &str) -> (usize, Option<SendId>) {
        self.ended.get(instance).map_or((0, None), |all| (all.len(), all.first().map(|(_, id)| *id)))
    }

    /// Is there room in the share of an instance for one more of so many bytes?
    pub(super) fn has_room(&self, instance: &str, bytes: usize) -> bool {
        let (count, used) = self.open_of.get(instance).copied().unwrap_or_default();
        count < limits::INSTANCE_SENDS_OPEN_MAX && used + bytes <= limits::INSTANCE_SENDS_BYTES_MAX
    }

    /// How many are open.
    pub(super) const fn open_count(&self) -> usize {
        self.open
    }
}

impl Places<Send> for SendPlaces {
    fn insert(&mut self, id: SendId, it: &Send) {
        self.of.insert((it.conversation, id));
        self.by_agent.extend(it.agent.map(|agent| (agent, id)));
        self.by_instance.insert((it.instance.clone(), id));
        self.by_key.extend(it.key.map(|key| (key, id)));
        if let Some(at) = it.ended_at {
            self.ended.entry(it.instance.clone()).or_default().insert((at, id));
        }
        if it.state == SendState::Queued {
            self.open += 1;
            let (count, bytes) = self.open_of.entry(it.instance.clone()).or_default();
            (*count, *bytes) = (*count + 1, *bytes + it.bytes as usize);
        }
    }

    fn remove(&mut self, id: SendId, it: &Send) {
        self.of.remove(&(it.conversation, id));
        if let Some(agent) = it.agent {
            self.by_agent.remove(&(agent, id));
        }
        self.by_instance.remove(&(it.instance.clone(), id));
        if let Some(key) = it.key {
            self.by_key.remove(&key);
        }
        if let (Some(at), Some(ended)) = (it.ended_at, self.ended.get_mut(&it.instance)) {
            ended.remove(&(at, id));
            if ended.is_empty() {
                self.ended.remove(&it.instance);
            }
        }
        if it.state == SendState::Queued {
            self.open -= 1;
            if let Some((count, bytes)) = self.open_of.get_mut(&it.instance) {
                (*count, *bytes) = (*count - 1, *bytes - it.bytes as usize);
                if *count == 0 {
                    self.open_of.remove(&it.instance);
                }
            }
        }
    }
}

/// Pairings by chat, and offers by instance.
#[derive(Debug, Default, PartialEq)]
pub struct PairingPlaces {
    by_chat: BTreeMap<(Box<str>, Box<str>), PairingId>,
    offers: BTreeSet<(Box<str>, PairingId)>,
    by_end: BTreeSet<(Timestamp, PairingId)>,
}

impl PairingPlaces {
    /// The pairing of a chat.
    pub(super) fn of_chat(&self, instance: &str, chat: &str) -> Option<PairingId> {
        self.by_chat.get(&(instance.into(), chat.into())).copied()
    }

    /// The offers of an instance.
    pub(super) fn offers(&self, instance: &str) -> impl Iterator<Item = PairingId> + '_ {
        let all = (Box::from(instance), PairingId(Uuid::nil()))..=(Box::from(instance), PairingId(Uuid::max()));
        self.offers.range(all).map(|(_, id)| *id)
    }

    /// The offer that is void first.
    pub(super) fn first_void(&self) -> Option<(Timestamp, PairingId)> {
        self.by_end.first().copied()
    }

    /// Offers, the one that is void last first.
    pub(super) fn last_void(&self) -> impl Iterator<Item = (Timestamp, PairingId)> + '_ {
        self.by_end.iter().rev().copied()
    }
}

impl Mirrored<Pairing> for PairingPlaces {
    fn place(&mut self, id: PairingId, it: &Pairing, is_in: bool) {
        match &it.state {
            PairingState::Offered { expires_at, .. } => {
                self.offers.put((it.instance.clone(), id), is_in);
                self.by_end.put((*expires_at, id), is_in);
            }
            PairingState::Paired { chat, .. } => {
                self.by_chat.put(((it.instance.clone(), chat.clone()), id), is_in);
            }
        }
    }
}
