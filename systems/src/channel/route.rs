//! Which agent answers a message. There is no last guess: where nothing names an agent, none answers.

use agentsvc_components::AgentId;
use agentsvc_components::channel::ConversationId;
use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::channel::message::ChatEvent;
use agentsvc_components::channel::rules::{ChatBinding, InstanceRules};
use agentsvc_components::manifest::channel::AutoRoute;
use bevy_ecs::prelude::World;

use super::begin::name_of;
use super::fit::{self, Fitting};
use super::{rules, talk};
use crate::kernel::clock::Now;

/// Words of a message that an alias may be.
const ALIAS_WORDS_MAX: usize = 16;

/// The agent of a message: that which it or its thread asks for, that which a group mentions, the choice of the chat, the one
/// that fits the message, the one that holds the conversation, a binding of the chat or sender, the agent of the instance, another binding.
pub(super) fn route(
    world: &mut World,
    of: &InstanceRules,
    (id, conversation): (ConversationId, &Conversation),
    event: &ChatEvent,
) -> Option<AgentId> {
    let fitting = fit::fitting(world, of, conversation, event);
    if let Some(Fitting { diverging, .. }) = fitting
        && diverging != conversation.diverging
    {
        talk::update(world, id, |its| its.diverging = diverging);
    }
    let world = &*world;
    let offered = rules::offered(world, of);
    let now = world.resource::<Now>().0;
    let answers = |id: &AgentId| rules::answers_in(world, of, *id);
    let named = |word: &str| rules::agent(world, word).filter(answers);
    let default_agent = of.agent.as_deref().and_then(|word| rules::agent(world, word));
    let auto_route = rules::merged(world, of, default_agent).auto_route.unwrap_or_default();
    let by_fit = fitting.and_then(|fitting| fitting.agent).filter(answers);
    let asked = event.asked_agent.as_deref().and_then(named).filter(|id| offered.contains(id));
    let holder = conversation.holder.filter(|(_, until)| now < *until).map(|(id, _)| id);
    let bound = best(of, event);
    let by_peer = bound.filter(|binding| binding.peer_id.is_some());
    asked
        .or_else(|| rules::mentioned(world, of, event).filter(|_| event.is_group))
        .or_else(|| begins_with_name(world, &offered, event).filter(|_| auto_route != AutoRoute::Off))
        .or_else(|| conversation.agent.filter(|id| offered.contains(id)))
        .or_else(|| begins_with_alias(world, &offered, event).filter(|_| auto_route != AutoRoute::Off))
        .or(by_fit)
        .or_else(|| holder.filter(answers))
        .or_else(|| by_peer.and_then(|binding| named(&binding.agent)))
        .or_else(|| of.agent.as_deref().and_then(named))
        .or_else(|| bound.and_then(|binding| named(&binding.agent)))
}

/// The agent that the first word of a message names.
fn begins_with_name(world: &World, offered: &[AgentId], event: &ChatEvent) -> Option<AgentId> {
    let word = event.text.split_whitespace().next()?.trim_start_matches('@').trim_end_matches([',', ':', '!']);
    let is_named = |id: &&AgentId| name_of(world, **id).is_some_and(|name| name.eq_ignore_ascii_case(word));
    offered.iter().find(is_named).copied()
}

/// The agent whose alias the first words of a message are. What the person chose with `/agent` comes first.
fn begins_with_alias(world: &World, offered: &[AgentId], event: &ChatEvent) -> Option<AgentId> {
    let begun: Vec<String> = fit::words(&event.text).take(ALIAS_WORDS_MAX).collect();
    let is_meant = |id: &&AgentId| {
        let mut aliases = fit::routing(world, **id).into_iter().flat_map(|of| &of.aliases);
        aliases.any(|alias| {
            let alias: Vec<String> = fit::words(alias).collect();
            !alias.is_empty() && begun.starts_with(&alias)
        })
    };
    offered.iter().find(is_meant).copied()
}

/// The binding that matches with the most weight; of equal ones the first.
fn best<'r>(of: &'r InstanceRules, event: &ChatEvent) -> Option<&'r ChatBinding> {
    let weighed = of.bindings.iter().filter_map(|binding| Some((weight(of, binding, event)?, binding)));
    let mut best: Option<(u32, &ChatBinding)> = None;
    for (weight, binding) in weighed {
        if best.is_none_or(|(most, _)| weight > most) {
            best = Some((weight, binding));
        }
    }
    best.map(|(_, binding)| binding)
}

/// The weight of a binding; `None` where something that it names does not match, or it names nothing.
fn weight(of: &InstanceRules, binding: &ChatBinding, event: &ChatEvent) -> Option<u32> {
    let account = event.account_id.as_deref().unwrap_or(&of.name);
    let is_peer = |id: &str| *event.chat == *id || (event.sender.is_person && *event.sender.id == *id);
    let roles = (!binding.roles.is_empty()).then(|| binding.roles.iter().any(|role| event.sender.roles.contains(role)));
    let parts = [
        binding.peer_id.as_deref().map(is_peer),
        binding.guild_id.as_deref().map(|id| event.guild_id.as_deref() == Some(id)),
        roles,
        binding.account_id.as_deref().map(|id| id == account),
        binding.channel.as_deref().map(|id| id == &*of.name || id == &*of.channel_type),
    ];
    let matches = parts.iter().all(|matches| matches.unwrap_or(true));
    let sum = binding.weight();
    (matches && sum > 0).then_some(sum)
}
