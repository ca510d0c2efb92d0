//! Which instances and chats others of the world can name.

use agentsvc_components::AgentId;
use agentsvc_components::channel::ConversationId;
use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::channel::message::Sender;
use agentsvc_components::channel::rules::ChannelInstance;
use bevy_ecs::prelude::World;

use super::index::{Conversations, Instances};
use super::{pair, rules, strangers, talk};
use crate::kernel::entities::state;

/// Conversations of an agent that are looked at for one that is known.
const LOOKED_AT: usize = 256;
/// Threads of a chat that are looked at.
const THREADS_MAX: usize = 1_024;

/// The conversation in which the agent was active last, of those that the operator knows: paired ones, and chats of two with a
/// user or recipient of the configuration. Anyone else could write last to be sent what is for others.
pub(crate) fn last_chat(world: &World, agent: AgentId) -> Option<ConversationId> {
    let all = world.resource::<Conversations>();
    // Behind them those whose mark is not known yet: chats of users who were bound since their last message.
    let mut newest = all.trusted_of_agent(agent).take(LOOKED_AT).chain(all.of_agent(agent).take(LOOKED_AT));
    newest.find(|id| {
        state::<Conversation>(world, *id).is_some_and(|its| is_trusted(world, &its.instance, &its.chat, its.is_group))
    })
}

/// A chat was paired, or is not any more: its conversations are marked anew.
pub(super) fn mark(world: &mut World, instance: &str, chat: &str) {
    let all: Vec<_> = world.resource::<Conversations>().of_chat(instance, chat).take(THREADS_MAX).collect();
    for id in all {
        let is_trusted = state::<Conversation>(world, id)
            .is_some_and(|its| is_trusted(world, &its.instance, &its.chat, its.is_group));
        talk::update(world, id, |its| its.is_trusted = is_trusted);
        if is_trusted {
            strangers::set(world, id, false);
        }
    }
}

/// Is it paired, or a chat of two with a user or recipient of the configuration?
pub(super) fn is_trusted(world: &World, instance: &str, chat: &str, is_group: bool) -> bool {
    let is_named = || {
        let person = Sender { id: chat.into(), is_person: true, ..Sender::default() };
        let rules = rules::of(world, instance);
        rules.is_some_and(|of| rules::role(world, &of, chat, &person).is_some() || rules::is_recipient(&of, &person))
    };
    pair::paired_at(world, instance, chat).is_some() || (!is_group && is_named())
}

/// Is there an instance of this name? Then its channel type.
pub(crate) fn named(world: &World, instance: &str) -> Option<Box<str>> {
    rules::of(world, instance).map(|of| of.channel_type)
}

/// The names of the instances of a channel type.
pub(crate) fn of_type(world: &World, channel_type: &str) -> Vec<Box<str>> {
    let all = world.resource::<Instances>().after(None);
    let rules = all.filter_map(|(_, at)| Some(&world.get::<ChannelInstance>(at)?.rules));
    rules.filter(|rules| *rules.channel_type == *channel_type).map(|rules| rules.name.clone()).collect()
}
