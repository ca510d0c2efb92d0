//! How many entries all agents have: kept up to date with each change, so that no request walks over all agents.

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::World;

use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::record::EntryCounts;

use super::counts::Entries;
use crate::kernel::command::{Answer, Command, Place};

/// What all agents have together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    levels: [u64; 3],
    categories: Ranking<Box<str>>,
    agents: Ranking<AgentId>,
}

/// Counts, and what they count in the order of the counts.
#[derive(Debug, PartialEq, Eq)]
struct Ranking<K> {
    counts: BTreeMap<K, u64>,
    order: BTreeSet<(u64, K)>,
}

impl<K> Default for Ranking<K> {
    fn default() -> Self {
        Self { counts: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Ranking<K> {
    /// What counted `less` counts `more` now.
    fn replace(&mut self, key: &K, less: u32, more: u32) {
        if less == more {
            return;
        }
        let before = self.counts.remove(key).unwrap_or(0);
        let after = (before + u64::from(more)).saturating_sub(u64::from(less));
        self.order.remove(&(before, key.clone()));
        if after > 0 {
            self.counts.insert(key.clone(), after);
            self.order.insert((after, key.clone()));
        }
    }

    /// Those that count most, the first ones first.
    fn most(&self, named: usize) -> Vec<(K, u64)> {
        self.order.iter().rev().take(named).map(|(count, key)| (key.clone(), *count)).collect()
    }
}

impl Totals {
    /// An agent that had `before` has `after` now.
    pub(super) fn replace(&mut self, agent: AgentId, before: &EntryCounts, after: &EntryCounts) {
        for (level, sum) in self.levels.iter_mut().enumerate() {
            *sum = (*sum + u64::from(after.levels[level])).saturating_sub(u64::from(before.levels[level]));
        }
        for (at, (name, count)) in after.categories.iter().enumerate() {
            self.categories.replace(name, count_of(before, at, name), *count);
        }
        for (at, (name, count)) in before.categories.iter().enumerate() {
            if count_of(after, at, name) == 0 {
                self.categories.replace(name, *count, 0);
            }
        }
        self.agents.replace(&agent, before.entries(), after.entries());
    }
}

/// Entries of a category, which most often stands `at` this place.
fn count_of(counts: &EntryCounts, at: usize, name: &str) -> u32 {
    let is_named = |of: &&(Box<str>, u32)| *of.0 == *name;
    let found = counts.categories.get(at).filter(is_named).or_else(|| counts.categories.iter().find(is_named));
    found.map_or(0, |(_, count)| *count)
}

/// How many entries all agents have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryTotals {
    /// By level, in the order of [`Level::ALL`](agentsvc_components::proactive_memory::Level::ALL).
    pub levels: [u64; 3],
    /// The categories with most entries, those without one under the empty word.
    pub categories: Vec<(Box<str>, u64)>,
    /// The agents with most entries.
    pub agents: Vec<(AgentId, u64)>,
}

impl EntryTotals {
    /// All of them; those that have expired and were not yet erased too.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.levels.iter().sum()
    }
}

/// Counts the entries of all agents.
#[derive(Clone, Copy, Debug)]
pub struct GetEntryTotals {
    /// So many categories, and agents, are named: those with most entries.
    pub named: usize,
}

impl Command for GetEntryTotals {
    type Reply = EntryTotals;
    const NAME: &'static str = "get_memory_entry_totals";
    const WRITES: bool = false;
    const PLACE: Place<Self> = Place::All;

    fn run(self, world: &mut World) -> Answer<EntryTotals> {
        let totals = world.resource::<Entries>().totals();
        let (categories, agents) = (totals.categories.most(self.named), totals.agents.most(self.named));
        Answer::read(EntryTotals { levels: totals.levels, categories, agents })
    }
}
