//! Agents' memory for routes and tools: what the disk knows of it and the door to change it, brought together.
//!
//! A change is made of what a writer saw on disk; the world refuses it when that is out of date, and the writer looks
//! again (see `systems/src/memory/mod.rs`).

use agentsvc_systems::memory::error_codes;
use std::sync::Arc;

use crate::http::blocking::spawn_blocking;
use agentsvc_components::memory::record::MemoryRecord;
use agentsvc_components::{AgentId, Refusal, RefusalKind, Timestamp, TurnId};
use agentsvc_systems::memory::{DeleteMemory, Doomed, GetMemoryUse, MemoryUse, PutEntry, PutMemory};

use crate::http::bridge::Bridge;
use crate::http::error::ContentError;
use crate::memory::store::{MemoryRange, MemoryRow, MemoryStore};

/// How often a writer looks again before it gives up: each time another change of the same keys came in between.
const TRIES_MAX: usize = 32;

/// The memory of one agent.
#[derive(Clone)]
pub struct AgentMemory {
    /// The way into the world.
    pub bridge: Bridge,
    /// The rows on disk.
    pub store: Arc<dyn MemoryStore>,
    /// Whose.
    pub agent: AgentId,
    /// The turn that uses it, if one does.
    pub by: Option<TurnId>,
}

/// An entry to store.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// Its key.
    pub key: Box<str>,
    /// Compact JSON.
    pub value: Box<str>,
    /// When the key was first stored, where that is to be kept.
    pub created_at: Option<Timestamp>,
    /// When the value was last stored, where that is to be kept.
    pub updated_at: Option<Timestamp>,
}

/// What to do with existing keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// The new value takes its place.
    #[default]
    Overwrite,
    /// Keep the existing value.
    Skip,
    /// Nothing is stored at all.
    Fail,
}

/// What a change did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Keys that are new.
    pub created: usize,
    /// Keys that were there and have another value now.
    pub updated: usize,
    /// Keys that were there and stayed as they were.
    pub skipped: usize,
}

impl AgentMemory {
    /// How much there is.
    ///
    /// # Errors
    /// The agent does not live, or the world is not ready.
    pub async fn usage(&self) -> Result<MemoryUse, Refusal> {
        self.bridge.ask(GetMemoryUse(self.agent)).await
    }

    /// One entry; `None` when there is none under this key.
    ///
    /// # Errors
    /// The store failed.
    pub async fn get(&self, key: &str) -> Result<Option<MemoryRecord>, Refusal> {
        let key: Box<str> = key.into();
        self.read(move |store, agent| store.memory(agent, &key)).await
    }

    /// Entries in the order of their keys.
    ///
    /// # Errors
    /// The store failed.
    pub async fn page(&self, range: MemoryRange) -> Result<Vec<MemoryRow>, Refusal> {
        self.read(move |store, agent| store.memories(agent, &range)).await
    }

    /// Stores entries, all or none; each key stands there once.
    ///
    /// # Errors
    /// A bad key or value, a full memory, a key that is there with [`OnConflict::Fail`], too many changes of the same
    /// keys at once, or the store failed.
    pub async fn put(&self, entries: Vec<NewEntry>, on_conflict: OnConflict) -> Result<Written, Refusal> {
        let entries: Arc<[NewEntry]> = entries.into();
        for _ in 0..TRIES_MAX {
            let revision = self.usage().await?.revision;
            let wanted = Arc::clone(&entries);
            let (puts, written) = self.read(move |store, agent| seen(store, agent, &wanted, on_conflict)).await?;
            if on_conflict == OnConflict::Fail && written.updated > 0 {
                let refusal = Refusal::conflict(format!("{} keys already exist", written.updated));
                return Err(refusal.with_code(error_codes::MEMORY_KEY_EXISTS));
            }
            if puts.is_empty() {
                return Ok(written);
            }
            match self.bridge.ask(PutMemory { agent: self.agent, revision, entries: puts, by: self.by }).await {
                Err(refusal) if is_changed(&refusal) => {}
                result => return result.map(|_| written),
            }
        }
        Err(busy())
    }

    /// Removes an entry; false when there is none under this key.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn delete(&self, key: &str) -> Result<bool, Refusal> {
        for _ in 0..TRIES_MAX {
            let revision = self.usage().await?.revision;
            let Some(record) = self.get(key).await? else { return Ok(false) };
            let doomed = Doomed { key: key.into(), bytes: (key.len() + record.value.len()) as u64 };
            let delete = DeleteMemory { agent: self.agent, revision, entries: vec![doomed], by: self.by };
            match self.bridge.ask(delete).await {
                Err(refusal) if is_changed(&refusal) => {}
                result => return result.map(|_| true),
            }
        }
        Err(busy())
    }

    /// Reads off the async threads.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn MemoryStore, AgentId) -> Result<T, ContentError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (store, agent) = (Arc::clone(&self.store), self.agent);
        let read = spawn_blocking(move || read(&*store, agent)).await;
        let failed = |_| Refusal::new(RefusalKind::Failed, "the memory could not be read");
        read.map_err(failed)?.map_err(|error| {
            tracing::error!(%error, %agent, "memory could not be read");
            Refusal::new(RefusalKind::Failed, "the memory could not be read")
        })
    }
}

/// The entries with what is on disk under their keys.
fn seen(
    store: &dyn MemoryStore,
    agent: AgentId,
    entries: &[NewEntry],
    on_conflict: OnConflict,
) -> Result<(Vec<PutEntry>, Written), ContentError> {
    let (mut puts, mut written) = (Vec::with_capacity(entries.len()), Written::default());
    for NewEntry { key, value, created_at, updated_at } in entries {
        let old = store.memory(agent, key)?;
        match (&old, on_conflict) {
            (None, _) => written.created += 1,
            (Some(_), OnConflict::Skip) => {
                written.skipped += 1;
                continue;
            }
            (Some(_), _) => written.updated += 1,
        }
        puts.push(PutEntry {
            key: key.clone(),
            value: value.clone(),
            created_at: created_at.or(old.as_ref().map(|old| old.created_at)),
            updated_at: *updated_at,
            replaces: old.map(|old| (key.len() + old.value.len()) as u64),
        });
    }
    Ok((puts, written))
}

fn is_changed(refusal: &Refusal) -> bool {
    refusal.code == Some(error_codes::MEMORY_CHANGED)
}

fn busy() -> Refusal {
    Refusal::busy("too many concurrent changes of the same memory keys", 1).with_code(error_codes::MEMORY_CHANGED)
}
