//! How many entries each agent has, by level and category. The entries themselves are content and stay on disk.

use std::collections::BTreeMap;
use std::ops::Bound;

use bevy_ecs::prelude::{Resource, World};

use agentsvc_components::proactive_memory::Level;
use agentsvc_components::proactive_memory::change::{ChangedEntries, EntriesChanged};
use agentsvc_components::proactive_memory::record::{EntryCounts, MemoryEntriesRecord, MemoryEntryRecord};
use agentsvc_components::{AgentId, Refusal, Timestamp};
use serde::{Deserialize, Serialize};

use super::limits;
use super::totals::Totals;
use crate::config::Settings;
use crate::kernel::check::Faults;
use crate::kernel::command::{Answer, Command, Place};
use crate::kernel::outbox::Emit;
use crate::kernel::page::Page;
use crate::kernel::record::Error;
use crate::kernel::restore::Records;
use crate::kernel::{index, record};
use crate::memory;

/// What the world keeps of the entries of every agent that has, or had, any.
#[derive(Resource, Default)]
pub(crate) struct Entries {
    known: BTreeMap<AgentId, MemoryEntriesRecord>,
    totals: Totals,
}

impl Entries {
    /// What is kept of an agent.
    pub(super) fn get(&self, agent: AgentId) -> Option<&MemoryEntriesRecord> {
        self.known.get(&agent)
    }

    /// What all agents have together.
    pub(super) const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Keeps this of its agent.
    pub(super) fn set(&mut self, known: MemoryEntriesRecord) {
        let (agent, after) = (known.agent, known.counts.clone());
        let before = self.known.insert(agent, known).map(|known| known.counts).unwrap_or_default();
        self.totals.replace(agent, &before, &after);
    }

    /// Forgets an agent.
    fn remove(&mut self, agent: AgentId) -> Option<MemoryEntriesRecord> {
        let known = self.known.remove(&agent)?;
        self.totals.replace(agent, &known.counts, &EntryCounts::default());
        Some(known)
    }
}

/// What of an entry counts: a writer says it of the row that it saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Its level.
    pub level: Level,
    /// Its category.
    pub category: Box<str>,
    /// The user that it is about.
    pub user: Option<Box<str>>,
    /// Bytes of its texts.
    pub bytes: u64,
    /// It was replaced by another.
    pub is_replaced: bool,
}

impl From<&MemoryEntryRecord> for Counted {
    fn from(record: &MemoryEntryRecord) -> Self {
        Self {
            level: record.level,
            category: record.category.clone(),
            user: record.user.clone(),
            bytes: record.bytes(),
            is_replaced: record.deleted_at.is_some(),
        }
    }
}

/// One more entry.
pub(super) fn add(counts: &mut EntryCounts, entry: &Counted) {
    counts.bytes += entry.bytes;
    if entry.is_replaced {
        counts.replaced += 1;
        return;
    }
    counts.levels[entry.level as usize] += 1;
    match counts.categories.iter_mut().find(|(name, _)| *name == entry.category) {
        Some((_, count)) => *count += 1,
        None => counts.categories.push((entry.category.clone(), 1)),
    }
}

/// One entry less.
pub(super) fn remove(counts: &mut EntryCounts, entry: &Counted) {
    counts.bytes = counts.bytes.saturating_sub(entry.bytes);
    if entry.is_replaced {
        counts.replaced = counts.replaced.saturating_sub(1);
        return;
    }
    let level = &mut counts.levels[entry.level as usize];
    *level = level.saturating_sub(1);
    if let Some(at) = counts.categories.iter().position(|(name, _)| *name == entry.category) {
        counts.categories[at].1 -= 1;
        if counts.categories[at].1 == 0 {
            counts.categories.swap_remove(at);
        }
    }
}

/// What an agent has of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryUse {
    /// Whose.
    pub agent: AgentId,
    /// How many, among them those that have expired and were not yet erased.
    pub counts: EntryCounts,
    /// Changes so far; see [`EntriesChanged`].
    pub changes: u64,
    /// The earliest moment at which an entry expires or is to be erased, or one before it.
    pub due: Option<Timestamp>,
    /// Entries that it may have (`[proactive_memory] max_memories_per_agent`).
    pub most: u32,
    /// Grows with every change; for the next change. Means nothing after a restart.
    pub revision: u64,
}

pub(super) fn shown(world: &World, agent: AgentId) -> EntryUse {
    let known = world.resource::<Entries>().get(agent);
    EntryUse {
        agent,
        counts: known.map(|known| known.counts.clone()).unwrap_or_default(),
        changes: known.map_or(0, |known| known.changes),
        due: known.and_then(|known| known.due),
        most: most(world),
        revision: memory::revision(world, agent),
    }
}

/// Does the agent have an entry?
pub(crate) fn has_entries(world: &World, agent: AgentId) -> bool {
    world.resource::<Entries>().get(agent).is_some_and(|known| known.counts.entries() > 0)
}

/// Entries that an agent may have.
pub(super) fn most(world: &World) -> u32 {
    world.resource::<Settings>().max_memories_per_agent.clamp(1, limits::ENTRIES_MAX)
}

/// Reads what an agent has of entries, once everything before is on disk: the rows read after the answer are at least as new
/// as its revision.
#[derive(Clone, Copy, Debug)]
pub struct GetEntryUse(pub AgentId);

impl Command for GetEntryUse {
    type Reply = EntryUse;
    const NAME: &'static str = "get_memory_entry_use";
    const WRITES: bool = false;
    const PLACE: Place<Self> = Place::Id(|it| it.0.0);

    fn run(self, world: &mut World) -> Answer<EntryUse> {
        Answer::stored(index::agent(world, self.0).map(|_| shown(world, self.0)))
    }
}

/// What agents have of entries, in the order of their ids; agents that never had any are left out.
#[derive(Clone, Copy, Debug)]
pub struct ListEntryUse {
    /// Behind this agent.
    pub after: Option<AgentId>,
    /// At most so many.
    pub limit: usize,
}

impl Command for ListEntryUse {
    type Reply = Page<EntryUse, AgentId, ()>;
    const NAME: &'static str = "list_memory_entry_use";
    const WRITES: bool = false;
    const PLACE: Place<Self> = Place::All;

    fn run(self, world: &mut World) -> Answer<Self::Reply> {
        let from = self.after.map_or(Bound::Unbounded, Bound::Excluded);
        let agents = world.resource::<Entries>().known.range((from, Bound::Unbounded));
        let agents: Vec<AgentId> = agents.map(|(agent, _)| *agent).take(self.limit).collect();
        let next = if agents.len() == self.limit { agents.last().copied() } else { None };
        let items = agents.into_iter().map(|agent| shown(world, agent)).collect();
        Answer::read(Page { items, next, total: () })
    }
}

/// Refuses counts that an agent may not have.
pub(super) fn admit(counts: &EntryCounts, before: &EntryCounts) -> Result<(), Refusal> {
    let full = |what: String| {
        let text = format!("the agent's memory is full: {what}");
        Err(Refusal::of(memory::error_codes::MEMORY_FULL, text))
    };
    if counts.bytes > before.bytes && counts.bytes > limits::ENTRIES_BYTES_MAX {
        return full(format!("the limit is {} bytes", limits::ENTRIES_BYTES_MAX));
    }
    let (now, then) = (counts.categories.len(), before.categories.len());
    if now > then && now > limits::ENTRY_CATEGORIES_MAX {
        return full(format!("the limit is {} categories", limits::ENTRY_CATEGORIES_MAX));
    }
    Ok(())
}

/// The rows of what is kept.
pub(super) fn rows(world: &World) -> impl Iterator<Item = &MemoryEntriesRecord> {
    world.resource::<Entries>().known.values()
}

/// Takes in what is stored (restore).
pub(super) fn load(world: &mut World, records: &mut Records) -> Result<(), Error> {
    let mut entries = Entries::default();
    for known in records.take::<MemoryEntriesRecord>() {
        memory::count(world, known.agent, known.counts.bytes.cast_signed());
        entries.set(known);
    }
    *world.resource_mut::<Entries>() = entries;
    Ok(())
}

/// Forgets the entries of an agent that is removed; their rows are swept with the rest of its content.
pub(super) fn erase(world: &mut World, agent: AgentId) {
    if let Some(known) = world.resource_mut::<Entries>().remove(agent) {
        world.op(record::remove::<MemoryEntriesRecord>(agent));
        world.effect(EntriesChanged { agent, number: known.changes + 1, entries: ChangedEntries::Gone });
    }
}

/// Says which bound does not hold.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    for known in rows(world) {
        let EntryCounts { levels, bytes, categories, .. } = &known.counts;
        let holds = known.counts.entries() <= limits::ENTRIES_MAX
            && *bytes <= limits::ENTRIES_BYTES_MAX
            && categories.len() <= limits::ENTRY_CATEGORIES_MAX;
        faults.that(holds, || format!("agent {}: {levels:?} memory entries of {bytes} bytes", known.agent));
        let by_category: u32 = categories.iter().map(|(_, count)| count).sum();
        let sum = known.counts.entries();
        faults
            .that(by_category == sum, || format!("agent {}: {sum} entries, {by_category} of categories", known.agent));
    }
    let mut counted = Totals::default();
    rows(world).for_each(|known| counted.replace(known.agent, &EntryCounts::default(), &known.counts));
    let holds = counted == *world.resource::<Entries>().totals();
    faults.that(holds, || format!("memory entries of all agents: counted are {counted:?}"));
}
