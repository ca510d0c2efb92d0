//! Keeps the stored vectors of entries up to date with an embedder that is asked over HTTP.
//!
//! One thread is told which entries changed. What it was not told, because it did not run or too much came at once, and what
//! another embedder made, it finds by comparing all rows with the stored vectors. Each vector is on the disk before the next are
//! asked for, so that a restart goes on where it was.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agentsvc_api::http::error::ContentError;
use agentsvc_api::proactive_memory::search::{EmbeddingState, Embeddings};
use agentsvc_api::proactive_memory::store::{EntryRow, EntryStore};
use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::change::{ChangedEntries, EntriesChanged};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError};

use super::remote::{RemoteEmbedder, Unembedded};
use super::vector_store::{Packed, Row, VectorStore, fingerprint, other_dimensions};
use super::{Chunks, Similar};
use crate::memory_index::config::Remote;
use crate::memory_index::index::key_of;
use crate::memory_index::segment::Key;

/// Changes that wait at most. More: all rows are compared.
const CHANGES_MAX: usize = 4_096;
/// Changes that are read at once.
const CHANGES_READ: usize = 64;
/// Rows that are read at once.
const PAGE_ROWS: usize = 500;
/// Stored keys that are read at once.
const PAGE_KEYS: usize = 1_000;
/// How often it is looked whether another world has come.
const IDLE: Duration = Duration::from_secs(30);
/// How long after a failure it is tried again.
const RETRY: Duration = if cfg!(test) { Duration::from_millis(20) } else { Duration::from_secs(1) };
/// The least time that a text takes: a provider is asked for at most 200 a second.
const TEXT_TIME: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_millis(5) };
/// The least similarity of texts that have something to do with each other.
const LEAST: f32 = 0.2;
/// Similarities that differ by less are the same.
const SAME: f32 = 0.001;
/// Rows from which on texts must be more similar than usual: some models find all texts similar.
const MANY_ROWS: usize = 20;

/// The vectors of a provider, stored and kept up to date.
pub(crate) struct Stored {
    shared: Arc<Shared>,
    changes: Sender<EntriesChanged>,
    /// Ends the thread when it is dropped.
    _alive: Sender<()>,
}

/// What a keeper of vectors works with.
pub(crate) struct Parts {
    /// The rows.
    pub(crate) entries: Arc<dyn EntryStore>,
    /// Where vectors are stored.
    pub(crate) root: PathBuf,
    /// Has another world taken the place of the one of before?
    pub(crate) is_another: Box<dyn FnMut() -> bool + Send>,
}

struct Shared {
    embedder: Arc<RemoteEmbedder>,
    entries: Arc<dyn EntryStore>,
    store: OnceLock<VectorStore>,
    name: Box<str>,
    model: Box<str>,
    chunks: Chunks,
    /// How often all rows had to be compared, and were.
    stale: AtomicU64,
    compared: AtomicU64,
    /// Entries that are embedded, as far as it was looked.
    embedded: AtomicU64,
    is_busy: AtomicBool,
}

impl Stored {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has none.
    pub(crate) fn start(config: &Remote, embedder: Arc<RemoteEmbedder>, parts: Parts) -> io::Result<Arc<Self>> {
        let Parts { entries, root, is_another } = parts;
        let shared = Arc::new(Shared {
            embedder,
            entries,
            store: OnceLock::new(),
            name: config.name().into(),
            model: format!("{}/{}", config.provider, config.model).into(),
            chunks: config.chunks,
            stale: AtomicU64::new(1),
            compared: AtomicU64::new(0),
            embedded: AtomicU64::new(0),
            is_busy: AtomicBool::new(false),
        });
        let (changes, changed) = crossbeam_channel::bounded(CHANGES_MAX);
        let (_alive, ended) = crossbeam_channel::bounded(0);
        let mut keeper = Keeper { shared: Arc::clone(&shared), root, is_another, changed, ended };
        std::thread::Builder::new().name("memory-vectors".to_owned()).spawn(move || keeper.run())?;
        Ok(Arc::new(Self { shared, changes, _alive }))
    }

    /// Have all entries that it was told of vectors?
    fn is_ready(&self) -> bool {
        let shared = &self.shared;
        let is_compared = shared.compared.load(Ordering::Acquire) >= shared.stale.load(Ordering::Acquire);
        is_compared && self.changes.is_empty() && !shared.is_busy.load(Ordering::Acquire)
    }
}

impl Similar for Stored {
    fn similarities(
        &self,
        agent: Option<AgentId>,
        query: &str,
        rows: &[EntryRow],
        longest: Duration,
    ) -> Option<Vec<f32>> {
        let shared = &self.shared;
        let dimensions = shared.store.get()?.dimensions()?;
        let stored: Vec<Option<Row>> = rows.iter().map(|row| shared.stored(row)).collect();
        // A query is not paid that has nothing to be compared with.
        if stored.iter().all(Option::is_none) {
            return None;
        }
        let asked = shared.embedder.query(agent, query, longest)?;
        if asked.len() != dimensions as usize {
            shared.embedder.useless(&other_dimensions(asked.len() as u64, dimensions.into()));
            return None;
        }
        let is_known = asked.iter().any(|part| *part != 0.0);
        let near: Vec<Option<f32>> = stored.iter().map(|row| nearness(row.as_ref()?, &asked)).collect();
        (is_known && near.iter().any(Option::is_some)).then(|| above_usual(&near))
    }

    fn state(&self) -> Embeddings {
        let shared = &self.shared;
        let error = shared.embedder.why();
        let state = match &error {
            Some(_) => EmbeddingState::Waiting,
            None if self.is_ready() => EmbeddingState::Ready,
            None => EmbeddingState::Embedding,
        };
        Embeddings {
            model: shared.model.clone(),
            dimensions: shared.store.get().and_then(VectorStore::dimensions),
            state,
            embedded: Some(shared.embedded.load(Ordering::Acquire)),
            error,
        }
    }

    fn tell(&self, changed: &EntriesChanged) {
        if let Err(TrySendError::Full(_)) = self.changes.try_send(changed.clone()) {
            self.shared.stale.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Shared {
    /// The vectors of the present text of an entry.
    fn stored(&self, row: &EntryRow) -> Option<Row> {
        let stored = self.store.get()?.get(&key(row)).ok().flatten();
        stored.filter(|stored| stored.fingerprint == fingerprint(&row.record.content) && !stored.vectors.is_empty())
    }
}

/// How similar an entry is to the vector, by the piece of it that is most similar.
fn nearness(stored: &Row, asked: &[f32]) -> Option<f32> {
    stored.vectors.iter().map(|vector| vector.similarity(asked)).reduce(f32::max)
}

/// 0 for what is no more similar than usual.
fn above_usual(near: &[Option<f32>]) -> Vec<f32> {
    let known: Vec<f32> = near.iter().flatten().copied().collect();
    let count = known.len().max(1) as f32;
    let mean = known.iter().sum::<f32>() / count;
    let deviation = (known.iter().map(|near| (near - mean).powi(2)).sum::<f32>() / count).sqrt();
    let least = if known.len() < MANY_ROWS { LEAST } else { LEAST.max(mean + deviation - SAME) };
    near.iter().map(|near| near.filter(|near| *near >= least).unwrap_or(0.0)).collect()
}

fn key(row: &EntryRow) -> Key {
    key_of(row.agent.0.as_bytes(), row.id.0.as_bytes())
}

/// The thread.
struct Keeper {
    shared: Arc<Shared>,
    root: PathBuf,
    is_another: Box<dyn FnMut() -> bool + Send>,
    changed: Receiver<EntriesChanged>,
    ended: Receiver<()>,
}

/// Why the thread stops what it does.
#[derive(Debug, thiserror::Error)]
enum Stop {
    #[error("the daemon stops")]
    Ended,
    #[error("{0}")]
    Disk(#[from] io::Error),
    #[error("{0}")]
    Rows(#[from] ContentError),
}

impl Keeper {
    fn run(&mut self) {
        let shared = Arc::clone(&self.shared);
        loop {
            let worked = self.store(&shared).and_then(|store| self.work(store));
            match worked {
                Ok(()) => {}
                Err(Stop::Ended) => return,
                Err(stop) => {
                    if let Stop::Disk(error) = &stop {
                        tracing::error!(%error, "vectors of memory entries could not be stored");
                        shared.embedder.useless(&error.to_string());
                    }
                    shared.stale.fetch_add(1, Ordering::AcqRel);
                    if self.wait(shared.embedder.pause().unwrap_or_default().max(RETRY)).is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn store<'s>(&self, shared: &'s Shared) -> Result<&'s VectorStore, Stop> {
        if shared.store.get().is_none() {
            let opened = VectorStore::open(&self.root, &shared.name)?;
            let _first = shared.store.set(opened);
        }
        shared.store.get().ok_or(Stop::Ended)
    }

    /// Compares all rows, where that is due, or waits for changes and takes some.
    fn work(&mut self, store: &VectorStore) -> Result<(), Stop> {
        if (self.is_another)() {
            self.shared.stale.fetch_add(1, Ordering::AcqRel);
        }
        let stale = self.shared.stale.load(Ordering::Acquire);
        if self.shared.compared.load(Ordering::Acquire) < stale {
            self.compare(store)?;
            self.shared.compared.store(stale, Ordering::Release);
            return store.remove_others().map_err(Into::into);
        }
        let first = match self.changed.recv_timeout(IDLE) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(Stop::Ended),
        };
        self.shared.is_busy.store(true, Ordering::Release);
        let taken = self.take(store, first);
        self.shared.is_busy.store(false, Ordering::Release);
        taken
    }

    fn take(&self, store: &VectorStore, first: EntriesChanged) -> Result<(), Stop> {
        // One that changed several times is embedded once.
        let mut missing: HashMap<Key, Box<str>> = HashMap::new();
        for changed in std::iter::once(first).chain(self.changed.try_iter().take(CHANGES_READ - 1)) {
            let agent = changed.agent;
            let ChangedEntries::These(ids) = &changed.entries else {
                self.remove_agent(store, agent.0.as_bytes())?;
                continue;
            };
            for id in ids.iter() {
                let key = key_of(agent.0.as_bytes(), id.0.as_bytes());
                let stored = store.get(&key)?;
                let record = self.shared.entries.entry(agent, *id)?.filter(|record| record.deleted_at.is_none());
                match record {
                    None if stored.is_some() => self.remove(store, &[key])?,
                    None => {}
                    Some(record) => {
                        let is_new = stored.as_ref().is_none_or(|row| row.fingerprint != fingerprint(&record.content));
                        if is_new && missing.insert(key, record.content).is_none() {
                            self.shared.embedded.fetch_sub(stored.is_some().into(), Ordering::AcqRel);
                        }
                    }
                }
            }
        }
        self.embed(store, &missing.into_iter().collect::<Vec<_>>())
    }

    fn remove(&self, store: &VectorStore, keys: &[Key]) -> Result<(), Stop> {
        store.remove(keys)?;
        self.shared.embedded.fetch_sub(keys.len() as u64, Ordering::AcqRel);
        Ok(())
    }

    fn remove_agent(&self, store: &VectorStore, agent: &[u8; 16]) -> Result<(), Stop> {
        loop {
            let keys = store.keys(&key_of(agent, &[0; 16]), agent, PAGE_KEYS)?;
            if keys.is_empty() {
                return Ok(());
            }
            self.remove(store, &keys)?;
        }
    }

    /// Removes the vectors of what is gone, and makes those that are missing.
    fn compare(&self, store: &VectorStore) -> Result<(), Stop> {
        self.shared.embedded.store(0, Ordering::Release);
        let (mut after, mut from) = (None, Some([0; 32]));
        while let Some(start) = from {
            let page = self.shared.entries.entries(None, after, PAGE_ROWS)?;
            let last = page.rows.last().filter(|_| !page.is_last);
            let rows: HashMap<Key, &EntryRow> =
                page.rows.iter().filter(|row| row.record.deleted_at.is_none()).map(|row| (key(row), row)).collect();
            let mut missing: Vec<(Key, Box<str>)> = Vec::new();
            self.remove_orphans(store, start, last.map(key), &rows)?;
            for (key, row) in &rows {
                let stored = store.get(key)?.map(|stored| stored.fingerprint);
                if stored == Some(fingerprint(&row.record.content)) {
                    self.shared.embedded.fetch_add(1, Ordering::AcqRel);
                } else {
                    missing.push((*key, row.record.content.clone()));
                }
            }
            self.embed(store, &missing)?;
            after = last.map(|last| (last.agent, last.id));
            from = last.and_then(|last| next(key(last)));
        }
        Ok(())
    }

    /// Removes what is stored from `start` to `end`, or to the end of all, and has no row.
    fn remove_orphans(
        &self,
        store: &VectorStore,
        start: Key,
        end: Option<Key>,
        rows: &HashMap<Key, &EntryRow>,
    ) -> Result<(), Stop> {
        let mut from = Some(start);
        while let Some(start) = from {
            let keys = store.keys(&start, &[], PAGE_KEYS)?;
            let is_within = |key: &&Key| end.is_none_or(|end| **key <= end);
            let orphans: Vec<Key> =
                keys.iter().filter(is_within).filter(|key| !rows.contains_key(*key)).copied().collect();
            store.remove(&orphans)?;
            from = keys.last().filter(is_within).filter(|_| keys.len() == PAGE_KEYS).and_then(|last| next(*last));
        }
        Ok(())
    }

    /// Makes and stores the vectors of these texts. Ends when all are there, however long that takes.
    fn embed(&self, store: &VectorStore, missing: &[(Key, Box<str>)]) -> Result<(), Stop> {
        let texts_max = self.shared.embedder.texts_max();
        for some in missing.chunks(texts_max) {
            let pieces: Vec<Vec<&str>> = some.iter().map(|(_, text)| self.shared.chunks.of(text)).collect();
            let texts: Vec<&str> = pieces.iter().flatten().copied().collect();
            let mut vectors = self.vectors(&texts, texts_max)?.into_iter();
            let row = |((key, text), pieces): (&(Key, Box<str>), &Vec<&str>)| {
                let vectors =
                    vectors.by_ref().take(pieces.len()).flatten().map(|vector| Packed::new(&vector)).collect();
                (*key, Row { fingerprint: fingerprint(text), vectors })
            };
            let rows: Vec<(Key, Row)> = some.iter().zip(&pieces).map(row).collect();
            store.put(&rows)?;
            self.shared.embedder.stored();
            self.shared.embedded.fetch_add(rows.len() as u64, Ordering::AcqRel);
        }
        Ok(())
    }

    /// A vector for each text; `None` for one that the model refuses.
    fn vectors(&self, texts: &[&str], texts_max: usize) -> Result<Vec<Option<Vec<f32>>>, Stop> {
        let (mut vectors, mut start) = (Vec::with_capacity(texts.len()), 0);
        while start < texts.len() {
            let most = self.shared.embedder.call_bytes_max();
            let mut bytes = 0;
            let fits = |text: &&&str| {
                bytes += text.len();
                bytes <= most
            };
            let count = texts[start..].iter().take(texts_max).take_while(fits).count().max(1);
            vectors.extend(self.ask(&texts[start..start + count])?);
            start += count;
        }
        Ok(vectors)
    }

    /// The same of one call. What is refused is asked for in halves.
    fn ask(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, Stop> {
        loop {
            let asked = self.shared.embedder.documents(texts.iter().map(|text| (*text).to_owned()).collect());
            match asked {
                Ok(vectors) => {
                    self.wait(TEXT_TIME * texts.len() as u32)?;
                    return Ok(vectors.into_iter().map(Some).collect());
                }
                Err(Unembedded::Refused) if texts.len() == 1 => {
                    tracing::warn!("the embedding model refuses an entry; it is found by its words");
                    return Ok(vec![None]);
                }
                Err(Unembedded::Refused) => {
                    let (one, other) = texts.split_at(texts.len() / 2);
                    let mut vectors = self.ask(one)?;
                    vectors.extend(self.ask(other)?);
                    return Ok(vectors);
                }
                Err(Unembedded::Paused(pause)) => self.wait(pause)?,
            }
        }
    }

    /// Waits, unless the daemon stops.
    fn wait(&self, pause: Duration) -> Result<(), Stop> {
        match self.ended.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            _ => Err(Stop::Ended),
        }
    }
}

/// The key behind another one.
fn next(key: Key) -> Option<Key> {
    let mut next = key;
    for byte in next.iter_mut().rev() {
        let (more, is_over) = byte.overflowing_add(1);
        *byte = more;
        if !is_over {
            return Some(next);
        }
    }
    None
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
