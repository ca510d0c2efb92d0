//! What holds for a message: the agent's overrides before those of the instance, key by key; who its sender is; and which
//! patterns match.

use agentsvc_components::AgentId;
use agentsvc_components::agent::Agent;
use agentsvc_components::channel::message::{ChatEvent, Sender};
use agentsvc_components::channel::rules::{ChannelInstance, ChatRole, ChatUser, InstanceRules};
use agentsvc_components::manifest::channel::ChannelOverrides;
use bevy_ecs::prelude::{Resource, World};
use hashbrown::HashMap;

use super::index::Instances;
use super::pair;
use crate::agent::shared_agent_named;
use crate::kernel::entities::state;
use crate::kernel::glob;
use crate::kernel::index::{self, id_of};
use crate::kernel::pattern_bounds::BoundedPatterns;
use crate::manifest::channels::trigger_patterns;
use crate::people;

/// Patterns that were read, by their texts; `None` for those that cannot be used, which a former release stored. What there is no
/// room for is read again when it is needed.
#[derive(Resource, Default)]
pub(super) struct Patterns(HashMap<Vec<Box<str>>, Option<BoundedPatterns>>);

/// Lists of patterns that are kept.
const PATTERNS_KEPT: usize = 256;

/// The rules of the instance of this name.
pub(super) fn of(world: &World, instance: &str) -> Option<InstanceRules> {
    let id = world.resource::<Instances>().named(instance)?;
    let mut rules = state::<ChannelInstance>(world, id)?.rules.clone();
    rules.users.extend(users_of(world, &rules.name));
    rules.users.extend(users_of(world, &rules.channel_type));
    Some(rules)
}

/// The users of this installation whom chats of a channel know, behind those of the configuration.
fn users_of(world: &World, channel: &str) -> impl Iterator<Item = ChatUser> {
    people::bound_to(world, channel).into_iter().map(|(sender, role)| ChatUser {
        name: Box::default(),
        role: ChatRole::parse(role.as_str()).unwrap_or_default(),
        channel_bindings: vec![(channel.into(), sender)],
    })
}

/// The agent that a word of the configuration or of a chat means: an id, or a name of an agent that is no user's.
pub(super) fn agent(world: &World, word: &str) -> Option<AgentId> {
    if let Some(entity) = shared_agent_named(world, word) {
        return Some(id_of(world, entity));
    }
    word.parse::<AgentId>().ok().filter(|id| index::agent(world, *id).is_ok())
}

/// What holds for an agent in an instance.
pub(super) fn merged(world: &World, rules: &InstanceRules, agent: Option<AgentId>) -> ChannelOverrides {
    let entity = agent.and_then(|agent| index::agent(world, agent).ok());
    match entity.and_then(|entity| world.get::<Agent>(entity)) {
        Some(agent) => agent.manifest.manifest.channel_overrides.over(&rules.overrides),
        None => rules.overrides.clone(),
    }
}

/// Does the agent answer in this instance? Its manifest may name the channels in which it does.
pub(super) fn answers_in(world: &World, rules: &InstanceRules, agent: AgentId) -> bool {
    let entity = index::agent(world, agent).ok();
    entity.and_then(|entity| world.get::<Agent>(entity)).is_some_and(|agent| {
        let channels = &agent.manifest.manifest.channels;
        channels.is_empty() || channels.iter().any(|name| *name == rules.channel_type || *name == rules.name)
    })
}

/// The agents that chats of an instance may ask for, those that there are.
pub(super) fn offered(world: &World, rules: &InstanceRules) -> Vec<AgentId> {
    let mut found: Vec<AgentId> = Vec::new();
    for word in rules.available_agents.iter().chain(&rules.agent) {
        if let Some(id) = agent(world, word).filter(|id| !found.contains(id) && answers_in(world, rules, *id)) {
            found.push(id);
        }
    }
    found
}

/// The agents that may answer in an instance: those that its chats may ask for, and those of bindings and of chats that
/// several answer.
pub(super) fn answering(world: &World, rules: &InstanceRules) -> Vec<AgentId> {
    let mut found = offered(world, rules);
    let is_here = |channel: &str| *channel == *rules.name || *channel == *rules.channel_type;
    let bindings = rules.bindings.iter().filter(|binding| binding.channel.as_deref().is_none_or(is_here));
    let words = bindings.map(|binding| &binding.agent).chain(rules.broadcast.iter().flat_map(|(_, agents)| agents));
    for word in words {
        if let Some(id) = agent(world, word).filter(|id| !found.contains(id) && answers_in(world, rules, *id)) {
            found.push(id);
        }
    }
    found
}

/// What the configuration says of a sender in a chat; `None` of one whom it does not know, or who is no person. What it says of
/// roles of the platform counts in paired chats only: anyone can make a group, in which they have every role.
pub(super) fn role(world: &World, rules: &InstanceRules, chat: &str, sender: &Sender) -> Option<ChatRole> {
    if !sender.is_person || sender.id.is_empty() {
        return None;
    }
    let is_bound = |(channel, id): &(Box<str>, Box<str>)| {
        (*channel == rules.name || *channel == rules.channel_type) && *id == sender.id
    };
    let named = |user: &&ChatUser| user.channel_bindings.iter().any(is_bound);
    let of_user = rules.users.iter().find(named).map(|user| user.role);
    of_user.or_else(|| {
        let held = rules.role_mapping.iter().filter(|(name, _)| sender.roles.contains(name));
        held.map(|(_, role)| *role).max().filter(|_| pair::paired_at(world, &rules.name, chat).is_some())
    })
}

/// Is the sender one of those who are told of approvals?
pub(super) fn is_recipient(rules: &InstanceRules, sender: &Sender) -> bool {
    sender.is_person && !sender.id.is_empty() && rules.notification_recipients.contains(&sender.id)
}

/// May the sender decide approvals?
pub(super) fn may_approve(world: &World, rules: &InstanceRules, chat: &str, sender: &Sender) -> bool {
    is_recipient(rules, sender) || role(world, rules, chat, sender) >= Some(ChatRole::Admin)
}

/// Does the configuration name the chat as one to send to?
#[must_use]
pub fn may_send_to(rules: &InstanceRules, chat: &str) -> bool {
    rules.default_conversation.as_deref() == Some(chat) || is_listed(rules, chat)
}

/// Is the chat in `allow_send_to`?
pub(super) fn is_listed(rules: &InstanceRules, chat: &str) -> bool {
    rules.allow_send_to.iter().any(|pattern| glob::matches(pattern, chat))
}

/// Is the message meant for the bot: does it mention it or an agent, or does a pattern match?
pub(super) fn is_addressed(world: &mut World, rules: &InstanceRules, of: &ChannelOverrides, event: &ChatEvent) -> bool {
    let mentions_one = || mentioned(world, rules, event).is_some();
    event.was_mentioned || mentions_one() || triggers(world, of, &event.text)
}

/// Does one of the trigger patterns match a text?
pub(super) fn triggers(world: &mut World, of: &ChannelOverrides, text: &str) -> bool {
    let Some(patterns) = of.group_trigger_patterns.as_ref().filter(|patterns| !patterns.is_empty()) else {
        return false;
    };
    let read = &mut world.resource_mut::<Patterns>().0;
    if !read.contains_key(patterns) {
        if read.len() >= PATTERNS_KEPT
            && let Some(other) = read.keys().next().cloned()
        {
            read.remove(&other);
        }
        read.insert(patterns.clone(), trigger_patterns(patterns).ok());
    }
    read.get(patterns).and_then(Option::as_ref).is_some_and(|read| read.is_match(text))
}

/// The agent that a message mentions, by its name or an alias.
pub(super) fn mentioned(world: &World, rules: &InstanceRules, event: &ChatEvent) -> Option<AgentId> {
    if event.mentions.is_empty() {
        return None;
    }
    let is_named = |id: &AgentId| {
        let entity = index::agent(world, *id).ok();
        let named =
            |name: &str| event.mentions.iter().any(|word| word.trim_start_matches('@').eq_ignore_ascii_case(name));
        entity.and_then(|entity| world.get::<Agent>(entity)).is_some_and(|agent| {
            let aliases = &agent.manifest.manifest.routing.aliases;
            named(&agent.name) || aliases.iter().any(|alias| named(alias))
        })
    };
    offered(world, rules).into_iter().find(is_named)
}
