//! How much memory an agent has, and which keys were changed last.

use crate::memory::error_codes;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use bevy_ecs::prelude::{Resource, World};
use hashbrown::HashMap;

use agentsvc_components::kernel::limit;
use agentsvc_components::memory::record::MemoryUseRecord;
use agentsvc_components::{AgentId, Refusal};

use super::share::{admit, count};
use crate::kernel::command::{Answer, command};
use crate::kernel::outbox::Emit;
use crate::kernel::record::Error;
use crate::kernel::restore::Records;
use crate::kernel::{index, record};

/// The memory of every agent that has any, or had some since the start.
#[derive(Resource, Default)]
pub(crate) struct Memories(HashMap<AgentId, Memory>);

/// What the world knows of one agent's memory.
#[derive(Default)]
struct Memory {
    entries: u32,
    bytes: u64,
    /// Changes since the start.
    revision: u64,
    /// Changes up to this one are no longer in `recent`.
    forgotten: u64,
    /// The revision and key hash of the last changes; at most [`limit::MEMORY_CHANGES_MAX`].
    recent: VecDeque<(u64, u64)>,
}

impl Memories {
    /// The records of all that have any.
    pub(crate) fn records(&self) -> impl Iterator<Item = MemoryUseRecord> {
        let used = self.0.iter().filter(|(_, memory)| memory.entries > 0);
        used.map(|(agent, Memory { entries, bytes, .. })| MemoryUseRecord {
            agent: *agent,
            entries: *entries,
            bytes: *bytes,
        })
    }
}

fn hash(key: &str) -> u64 {
    // Two keys of one hash only make a writer look once more.
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

impl Memory {
    /// Were the keys as they are now when the revision was `seen`?
    fn is_unchanged<'a>(&self, seen: u64, mut keys: impl Iterator<Item = &'a str>) -> bool {
        if seen == self.revision {
            return true;
        }
        if seen > self.revision || seen < self.forgotten {
            return false;
        }
        let since = || self.recent.iter().filter(|(revision, _)| *revision > seen);
        keys.all(|key| since().all(|(_, changed)| *changed != hash(key)))
    }

    fn note<'a>(&mut self, keys: impl ExactSizeIterator<Item = &'a str>) {
        self.revision += 1;
        if keys.len() > limit::MEMORY_CHANGES_MAX {
            self.recent.clear();
            self.forgotten = self.revision;
            return;
        }
        self.recent.extend(keys.map(|key| (self.revision, hash(key))));
        while self.recent.len() > limit::MEMORY_CHANGES_MAX {
            self.forgotten = self.recent.pop_front().map_or(self.forgotten, |(revision, _)| revision);
        }
    }
}

/// How much memory an agent has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// How many entries.
    pub entries: u32,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Grows with every change; for the next change. Means nothing after a restart.
    pub revision: u64,
}

/// A change of how much there is.
pub(super) struct Change {
    /// Entries more, or fewer.
    pub(super) entries: i64,
    /// Bytes more, or fewer.
    pub(super) bytes: i64,
}

/// Checks that `agent` lives and that its keys were not changed since the revision `seen`, and changes the numbers.
/// Refuses, and changes nothing, when there would be too much.
pub(super) fn change<'a>(
    world: &mut World,
    agent: AgentId,
    seen: u64,
    keys: impl ExactSizeIterator<Item = &'a str> + Clone,
    change: &Change,
) -> Result<MemoryUse, Refusal> {
    index::agent(world, agent)?;
    let room = admit(world, agent, change.bytes, error_codes::MEMORY_FULL);
    let mut memories = world.resource_mut::<Memories>();
    let memory = memories.0.entry(agent).or_default();
    if !memory.is_unchanged(seen, keys.clone()) {
        return Err(changed());
    }
    let entries = u32::try_from(i64::from(memory.entries) + change.entries).unwrap_or(0);
    let bytes = memory.bytes.saturating_add_signed(change.bytes);
    let full = |what: String| Refusal::of(error_codes::MEMORY_FULL, format!("the agent's memory is full: {what}"));
    if change.entries > 0 && entries > limit::MEMORY_ENTRIES_MAX {
        return Err(full(format!("the limit is {} entries", limit::MEMORY_ENTRIES_MAX)));
    }
    if change.bytes > 0 && bytes > limit::MEMORY_BYTES_MAX {
        return Err(full(format!("the limit is {} bytes", limit::MEMORY_BYTES_MAX)));
    }
    room?;
    let more = bytes.cast_signed() - memory.bytes.cast_signed();
    (memory.entries, memory.bytes) = (entries, bytes);
    memory.note(keys);
    let now = MemoryUse { entries, bytes, revision: memory.revision };
    count(world, agent, more);
    world.op(if entries == 0 {
        record::remove::<MemoryUseRecord>(agent)
    } else {
        record::put(&MemoryUseRecord { agent, entries, bytes })
    });
    Ok(now)
}

/// The revision of an agent's memory.
pub(crate) fn revision(world: &World, agent: AgentId) -> u64 {
    world.resource::<Memories>().0.get(&agent).map_or(0, |memory| memory.revision)
}

/// Refuses when `agent` does not live, or one of its keys was changed since the revision `seen`. A domain that keeps more of
/// an agent's memory has names that are no keys for it.
pub(crate) fn check_seen<'a>(
    world: &mut World,
    agent: AgentId,
    seen: u64,
    keys: impl Iterator<Item = &'a str>,
) -> Result<(), Refusal> {
    index::agent(world, agent)?;
    let memories = world.resource::<Memories>();
    let unchanged = memories.0.get(&agent).map_or(seen == 0, |memory| memory.is_unchanged(seen, keys));
    if unchanged { Ok(()) } else { Err(changed()) }
}

/// Counts a change of these keys.
pub(crate) fn note_change<'a>(world: &mut World, agent: AgentId, keys: impl ExactSizeIterator<Item = &'a str>) {
    world.resource_mut::<Memories>().0.entry(agent).or_default().note(keys);
}

/// The writer has not seen what there is now.
pub(crate) fn changed() -> Refusal {
    Refusal::conflict("the memory has changed in the meantime; try again").with_code(error_codes::MEMORY_CHANGED)
}

/// Takes in what is stored (restore).
pub(crate) fn load(world: &mut World, records: &mut Records) -> Result<(), Error> {
    for MemoryUseRecord { agent, entries, bytes } in records.take() {
        count(world, agent, bytes.cast_signed());
        let mut memories = world.resource_mut::<Memories>();
        memories.0.insert(agent, Memory { entries, bytes, ..Memory::default() });
    }
    Ok(())
}

/// How many changes each agent's memory had, in order of agents.
pub(crate) fn revisions(world: &World) -> Vec<(AgentId, u64)> {
    let memories = world.resource::<Memories>().0.iter();
    let mut revisions: Vec<_> = memories.map(|(agent, memory)| (*agent, memory.revision)).collect();
    revisions.retain(|(_, revision)| *revision > 0);
    revisions.sort_unstable();
    revisions
}

/// Counts on from `revisions`, so that whoever read before is not taken for up to date.
pub(crate) fn carry(world: &mut World, revisions: &[(AgentId, u64)]) {
    let mut memories = world.resource_mut::<Memories>();
    for (agent, revision) in revisions {
        let memory = memories.0.entry(*agent).or_default();
        (memory.revision, memory.forgotten) = (*revision, *revision);
    }
}

/// Forgets the memory of an agent that is removed; its rows are swept with the rest of its content.
pub(crate) fn erase(world: &mut World, agent: AgentId) {
    if world.resource_mut::<Memories>().0.remove(&agent).is_some_and(|memory| memory.entries > 0) {
        world.op(record::remove::<MemoryUseRecord>(agent));
    }
}

/// Reads how much memory an agent has, once everything before is on disk: the rows read after the answer are at
/// least as new as its revision.
#[derive(Clone, Copy, Debug)]
pub struct GetMemoryUse(pub AgentId);

command! {
    read "get_memory_use" GetMemoryUse => MemoryUse, Id(|it| it.0.0), |it, world| {
        Answer::stored(index::agent(world, it.0).map(|_| {
            world.resource::<Memories>().0.get(&it.0).map_or(
                MemoryUse { entries: 0, bytes: 0, revision: 0 },
                |memory| MemoryUse { entries: memory.entries, bytes: memory.bytes, revision: memory.revision },
            )
        }))
    }
}
