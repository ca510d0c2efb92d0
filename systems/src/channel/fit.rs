//! Which agent fits a message, by the words that it and the agent share (`auto_route = "sticky_heuristic"`).

use agentsvc_components::AgentId;
use agentsvc_components::agent::Agent;
use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::channel::message::ChatEvent;
use agentsvc_components::channel::rules::InstanceRules;
use agentsvc_components::manifest::Routing;
use agentsvc_components::manifest::channel::AutoRoute;
use bevy_ecs::prelude::World;
use hashbrown::HashSet;

use super::rules;
use crate::kernel::clock::Now;
use crate::kernel::index;

/// Points of a message that names the agent, of each alias, tag and weak alias, and of each long word of its description.
const NAME_POINTS: u32 = 6;
const ALIAS_POINTS: u32 = 3;
const TAG_POINTS: u32 = 3;
const WEAK_ALIAS_POINTS: u32 = 1;
const WORD_POINTS: u32 = 1;
/// Most points.
const POINTS_MAX: u32 = 10;
/// Letters of a word of a description that counts.
const WORD_LETTERS_MIN: usize = 5;
/// Words of a message that are looked at.
const WORDS_MAX: usize = 1_000;
/// What holds where the keys of `[channel_overrides]` say nothing.
const THRESHOLD: u32 = 6;
const BONUS: u32 = 4;
const DIVERGENCE: u32 = 2;

/// Which agent fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fitting {
    /// The agent; `None` where none fits well enough.
    pub(super) agent: Option<AgentId>,
    /// Messages in a row that fit another agent better than the one that holds the conversation.
    pub(super) diverging: u32,
}

/// The agent that fits a message; `None` where the instance does not choose like that.
pub(super) fn fitting(
    world: &World,
    of: &InstanceRules,
    conversation: &Conversation,
    event: &ChatEvent,
) -> Option<Fitting> {
    let default_agent = of.agent.as_deref().and_then(|word| rules::agent(world, word));
    let merged = rules::merged(world, of, default_agent);
    if merged.auto_route != Some(AutoRoute::StickyHeuristic) || event.command.is_some() {
        return None;
    }
    let said: HashSet<String> = words(&event.text).take(WORDS_MAX).collect();
    let offered = rules::offered(world, of);
    let points = |id: AgentId| points(world, id, &said);
    // Of equal ones the first.
    let best = offered.iter().map(|id| (*id, points(*id))).rev().max_by_key(|(_, points)| *points);
    let best = best.filter(|(_, points)| *points >= merged.auto_route_confidence_threshold.unwrap_or(THRESHOLD).max(1));
    let now = world.resource::<Now>().0;
    let holder = conversation.holder.filter(|(id, until)| now < *until && offered.contains(id)).map(|(id, _)| id);
    let Some(holder) = holder else {
        return Some(Fitting { agent: best.map(|(id, _)| id), diverging: 0 });
    };
    let kept = points(holder).saturating_add(merged.auto_route_sticky_bonus.unwrap_or(BONUS));
    let Some((other, _)) = best.filter(|(id, points)| *id != holder && *points > kept) else {
        return Some(Fitting { agent: Some(holder), diverging: 0 });
    };
    let diverging = conversation.diverging.saturating_add(1);
    Some(match diverging >= merged.auto_route_divergence_count.unwrap_or(DIVERGENCE) {
        true => Fitting { agent: Some(other), diverging: 0 },
        false => Fitting { agent: Some(holder), diverging },
    })
}

/// The words that lead to an agent.
pub(super) fn routing(world: &World, id: AgentId) -> Option<&Routing> {
    let entity = index::agent(world, id).ok()?;
    world.get::<Agent>(entity).map(|agent| &agent.manifest.manifest.routing)
}

/// The words of a text, in small letters.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

fn points(world: &World, id: AgentId, said: &HashSet<String>) -> u32 {
    let entity = index::agent(world, id).ok();
    let Some(agent) = entity.and_then(|entity| world.get::<Agent>(entity)) else { return 0 };
    let is_said = |text: &str| {
        let mut all = words(text).peekable();
        all.peek().is_some() && all.all(|word| said.contains(&word))
    };
    let manifest = &agent.manifest.manifest;
    let name = u32::from(is_said(&agent.name)) * NAME_POINTS;
    let said_of = |all: &[Box<str>]| all.iter().filter(|words| is_said(words)).count();
    let (tags, aliases) = (said_of(&manifest.tags), said_of(&manifest.routing.aliases));
    let weak = said_of(&manifest.routing.weak_aliases);
    let long: HashSet<String> =
        words(&manifest.description).filter(|word| word.chars().count() >= WORD_LETTERS_MIN).collect();
    let shared = long.iter().filter(|word| said.contains(*word)).count();
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let parts = [(tags, TAG_POINTS), (aliases, ALIAS_POINTS), (weak, WEAK_ALIAS_POINTS), (shared, WORD_POINTS)];
    let sum = parts.iter().fold(name, |sum, (of, each)| sum.saturating_add(count(*of).saturating_mul(*each)));
    sum.min(POINTS_MAX)
}
