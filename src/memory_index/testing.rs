//! What tests of the index need: rows in memory, a world, a folder.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use agentsvc_api::http::error::ContentError;
use agentsvc_api::proactive_memory::search::{MemorySearch, SearchScope};
use agentsvc_api::proactive_memory::store::{EntryPage, EntryRow, EntryStore};
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::change::{ChangedEntries, EntriesChanged};
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_components::{AgentId, Timestamp};
use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;
use tempfile::TempDir;
use uuid::Uuid;

use super::search::{MemoryIndex, World};
use super::worker::Worker;

/// Rows in memory.
#[derive(Default)]
pub(super) struct Rows(
    pub(super) Mutex<BTreeMap<(AgentId, MemoryEntryId), MemoryEntryRecord>>,
    pub(super) Mutex<Option<Held>>,
);

/// An entry whose reader waits.
pub(super) struct Held {
    pub(super) id: MemoryEntryId,
    /// Hears that there is a reader.
    pub(super) reached: Sender<()>,
    /// The reader goes on when its sender is dropped.
    pub(super) released: Receiver<()>,
}

impl Rows {
    fn page(
        &self,
        after: Option<(AgentId, MemoryEntryId)>,
        limit: usize,
        is_asked: impl Fn(&AgentId, &MemoryEntryRecord) -> bool,
    ) -> EntryPage {
        let rows = self.0.lock();
        let behind = rows.iter().filter(|(key, _)| after.is_none_or(|after| **key > after));
        let mut asked = behind.filter(|((agent, _), record)| is_asked(agent, record));
        let row = |((agent, id), record): (&(AgentId, MemoryEntryId), &MemoryEntryRecord)| EntryRow {
            agent: *agent,
            id: *id,
            record: record.clone(),
        };
        let rows = asked.by_ref().take(limit).map(row).collect();
        EntryPage { rows, is_last: asked.next().is_none() }
    }
}

impl EntryStore for Rows {
    fn entry(&self, agent: AgentId, id: MemoryEntryId) -> Result<Option<MemoryEntryRecord>, ContentError> {
        let held = self
            .1
            .lock()
            .as_ref()
            .filter(|held| held.id == id)
            .map(|held| (held.reached.clone(), held.released.clone()));
        if let Some((reached, released)) = held {
            let _heard = reached.try_send(());
            let _released = released.recv();
        }
        Ok(self.0.lock().get(&(agent, id)).cloned())
    }

    fn owner(&self, id: MemoryEntryId) -> Result<Option<AgentId>, ContentError> {
        Ok(self.0.lock().keys().find(|(_, of)| *of == id).map(|(agent, _)| *agent))
    }

    fn entries(
        &self,
        agent: Option<AgentId>,
        after: Option<(AgentId, MemoryEntryId)>,
        limit: usize,
    ) -> Result<EntryPage, ContentError> {
        Ok(self.page(after, limit, |of, _| agent.is_none_or(|agent| agent == *of)))
    }

    fn of_user(
        &self,
        user: &str,
        after: Option<(AgentId, MemoryEntryId)>,
        limit: usize,
    ) -> Result<EntryPage, ContentError> {
        Ok(self.page(after, limit, |_, record| record.user.as_deref() == Some(user)))
    }
}

/// A world in which all agents live but those that are gone.
#[derive(Default)]
pub(super) struct TestWorld {
    pub(super) gone: Mutex<HashSet<AgentId>>,
    pub(super) is_another: AtomicBool,
    /// How often a search waited for what is being stored.
    pub(super) settled: AtomicU64,
}

/// The time of the test world.
pub(super) const NOW: Timestamp = Timestamp(1_800_000_000_000);

impl World for TestWorld {
    fn living(&self, agents: Vec<AgentId>) -> Result<HashSet<AgentId>, ContentError> {
        Ok(agents.into_iter().filter(|agent| !self.gone.lock().contains(agent)).collect())
    }

    fn settled(&self) -> Result<(), ContentError> {
        self.settled.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn is_another(&self) -> bool {
        self.is_another.swap(false, Ordering::AcqRel)
    }

    fn now(&self) -> Timestamp {
        NOW
    }
}

/// Rows and their index.
pub(super) struct Fixture {
    pub(super) rows: Arc<Rows>,
    pub(super) world: Arc<TestWorld>,
    pub(super) index: MemoryIndex,
    pub(super) dir: TempDir,
}

impl Fixture {
    /// No rows.
    pub(super) fn new() -> Self {
        let (rows, world): (Arc<Rows>, Arc<TestWorld>) = Default::default();
        let dir = tempfile::tempdir().expect("a folder");
        let index = open(&rows, &world, &dir);
        Self { rows, world, index, dir }
    }

    /// The same rows and folder with another process.
    pub(super) fn restarted(self) -> Self {
        let Self { rows, world, index, dir } = self;
        drop(index);
        let index = open(&rows, &world, &dir);
        Self { rows, world, index, dir }
    }

    /// Stores entries and tells the index.
    pub(super) fn put(&self, agent: AgentId, entries: impl IntoIterator<Item = (MemoryEntryId, MemoryEntryRecord)>) {
        let mut ids = Vec::new();
        for (id, record) in entries {
            self.rows.0.lock().insert((agent, id), record);
            ids.push(id);
        }
        self.index.worker.tell(&EntriesChanged { agent, number: 1, entries: ChangedEntries::These(ids.into()) });
    }

    /// From now on, those that read this entry wait until the first of what is given is dropped. The second hears of one.
    pub(super) fn hold(&self, id: MemoryEntryId) -> (Sender<()>, Receiver<()>) {
        let ((release, released), (reached, hears)) = (bounded(0), bounded(1));
        *self.rows.1.lock() = Some(Held { id, reached, released });
        (release, hears)
    }

    /// Many entries about nothing that tests search for, of agents from `first` on.
    pub(super) fn fill(&self, first: u128, agents: u128, each: u128) {
        for number in first..first + agents {
            self.put(
                agent(number),
                (0..each).map(|n| (id(number << 64 | n), said(&format!("filler entry {n} number {number}")))),
            );
        }
    }

    /// Ids of the hits.
    pub(super) fn found(&self, scope: &SearchScope, query: &str) -> Vec<MemoryEntryId> {
        let found = self.index.search(scope, query, 10).expect("a search");
        found.hits.into_iter().map(|hit| hit.id).collect()
    }
}

fn open(rows: &Arc<Rows>, world: &Arc<TestWorld>, dir: &TempDir) -> MemoryIndex {
    let (entries, world): (Arc<dyn EntryStore>, Arc<dyn World>) = (Arc::clone(rows) as _, Arc::clone(world) as _);
    let worker = Worker::new(Arc::clone(&entries), dir.path().join("index"));
    MemoryIndex { entries, world, worker, vectors: Box::new(|| None) }
}

/// An agent.
pub(super) fn agent(number: u128) -> AgentId {
    AgentId(Uuid::from_u128(number))
}

/// An entry's id.
pub(super) fn id(number: u128) -> MemoryEntryId {
    MemoryEntryId(Uuid::from_u128(number))
}

/// An entry.
pub(super) fn said(content: &str) -> MemoryEntryRecord {
    MemoryEntryRecord { content: content.into(), confidence: 1.0, ..MemoryEntryRecord::default() }
}
