//! The thread that keeps the index up to date. There is none until there are many entries.
//!
//! It is told which entries changed, and reads their rows. What it was not told, because it did not run or because too much came
//! at once, it finds by comparing all rows with the index, a page at a time between what it is told. So an index that is missing
//! or damaged is built by the same walk that finds a single entry.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use agentsvc_api::http::error::ContentError;
use agentsvc_api::proactive_memory::store::{EntryRow, EntryStore};
use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::change::{ChangedEntries, EntriesChanged};
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError};
use parking_lot::{Condvar, Mutex};
use uuid::Uuid;
use xxhash_rust::xxh3::Xxh3;

use super::index::{Index, TAIL_DOCS, key_of};
use super::segment::{Doc, DocReader, Key, Segment, Source};

/// Changes that wait at most. More: all rows are compared.
const CHANGES_MAX: usize = 4_096;
/// Rows that are read at once.
const PAGE_ROWS: usize = 1_000;
/// How long nothing changes before what is in memory goes to the disk.
const IDLE: Duration = Duration::from_secs(30);

/// The index, and the thread that keeps it.
pub(super) struct Worker {
    shared: Arc<Shared>,
    changes: OnceLock<Option<Sender<EntriesChanged>>>,
}

/// What the thread and searches share.
struct Shared {
    entries: Arc<dyn EntryStore>,
    dir: PathBuf,
    index: OnceLock<Index>,
    progress: Mutex<Progress>,
    moved: Condvar,
}

/// How far the thread has come.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Changes that it was told, and those that it has read.
    told: u64,
    read: u64,
    /// How often all rows had to be compared, and were, or could not be.
    stale: u64,
    compared: u64,
}

impl Default for Progress {
    fn default() -> Self {
        Self { told: 0, read: 0, stale: 1, compared: 0 }
    }
}

impl Worker {
    /// No thread yet.
    pub(super) fn new(entries: Arc<dyn EntryStore>, dir: PathBuf) -> Self {
        let (index, progress, moved) = (OnceLock::new(), Mutex::default(), Condvar::new());
        let shared = Shared { entries, dir, index, progress, moved };
        Self { shared: Arc::new(shared), changes: OnceLock::new() }
    }

    /// Is there a thread?
    #[cfg(test)]
    pub(super) fn runs(&self) -> bool {
        self.changes.get().is_some_and(Option::is_some)
    }

    /// Entries changed. Never blocks.
    pub(super) fn tell(&self, changed: &EntriesChanged) {
        let Some(Some(changes)) = self.changes.get() else { return };
        if changed.entries == ChangedEntries::Gone {
            return;
        }
        self.shared.progress.lock().told += 1;
        match changes.try_send(changed.clone()) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                self.shared.progress.lock().stale += 1;
                self.shared.has_read();
            }
            Err(TrySendError::Disconnected(_)) => self.shared.has_read(),
        }
    }

    /// Other rows are in the store than before.
    pub(super) fn mark_stale(&self) {
        self.shared.progress.lock().stale += 1;
        // It wakes up and looks.
        let nothing = ChangedEntries::These(Arc::default());
        self.tell(&EntriesChanged { agent: AgentId(Uuid::nil()), number: 0, entries: nothing });
    }

    /// The index with all that was told before; starts the thread when there is none. Waits for at most so long: an index that
    /// is being built answers from what it has. `None` when there is none.
    pub(super) fn index(&self, longest: Duration) -> Option<&Index> {
        self.changes.get_or_init(|| start(&self.shared)).as_ref()?;
        let until = Instant::now() + longest;
        let mut progress = self.shared.progress.lock();
        let told = progress.told;
        let is_behind = |progress: &Progress| {
            let is_empty = self.shared.index.get().is_none_or(|index| index.docs() == 0);
            progress.read < told || (progress.compared == 0 && is_empty)
        };
        while is_behind(&progress) && !self.shared.moved.wait_until(&mut progress, until).timed_out() {}
        drop(progress);
        self.shared.index.get()
    }

    /// Waits until all rows were compared.
    #[cfg(test)]
    pub(super) fn compared(&self) -> Option<&Index> {
        self.changes.get_or_init(|| start(&self.shared)).as_ref()?;
        let mut progress = self.shared.progress.lock();
        while progress.compared < progress.stale || progress.read < progress.told {
            self.shared.moved.wait(&mut progress);
        }
        drop(progress);
        self.shared.index.get()
    }

    /// Entries and bytes of the index, where there is one.
    pub(super) fn size(&self) -> Option<(u64, u64)> {
        self.shared.index.get().map(|index| (index.docs(), index.bytes()))
    }
}

fn start(shared: &Arc<Shared>) -> Option<Sender<EntriesChanged>> {
    let (sender, changes) = crossbeam_channel::bounded(CHANGES_MAX);
    let keeper = Keeper { shared: Arc::clone(shared), changes };
    let thread = std::thread::Builder::new().name("memory-index".to_owned()).spawn(move || keeper.run());
    match thread {
        Ok(_) => Some(sender),
        Err(error) => {
            tracing::error!(%error, "the thread of the memory index could not be started");
            None
        }
    }
}

impl Shared {
    fn has_read(&self) {
        self.progress.lock().read += 1;
        self.moved.notify_all();
    }
}

/// The thread. It ends with the last sender.
struct Keeper {
    shared: Arc<Shared>,
    changes: Receiver<EntriesChanged>,
}

impl Keeper {
    fn run(&self) {
        let index = match Index::open(&self.shared.dir) {
            Ok(index) => self.shared.index.get_or_init(|| index),
            Err(error) => {
                tracing::error!(%error, dir = %self.shared.dir.display(), "the memory index cannot be opened");
                self.compared(u64::MAX);
                // Searches that wait are let go.
                self.changes.iter().for_each(|_| self.shared.has_read());
                return;
            }
        };
        loop {
            let Progress { stale, compared, .. } = *self.shared.progress.lock();
            if compared < stale {
                let compared = self.compare(index);
                self.report(index, compared);
                self.compared(stale);
            }
            match self.changes.recv_timeout(IDLE) {
                Ok(changed) => self.take(index, &changed),
                Err(RecvTimeoutError::Timeout) => {
                    let flushed = index.flush(&mut |doc| self.is_there(doc)).map_err(Into::into);
                    self.report(index, flushed);
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn compared(&self, stale: u64) {
        self.shared.progress.lock().compared = stale;
        self.shared.moved.notify_all();
    }

    /// What failed is tried again with the next walk.
    fn report(&self, index: &Index, result: Result<(), Failure>) {
        let Err(failure) = result else { return };
        if let Failure::Store(ContentError::Exchanging) = failure {
            return;
        }
        tracing::error!(error = %failure, "the memory index could not be updated");
        index.drop_tail();
    }

    fn take(&self, index: &Index, changed: &EntriesChanged) {
        let result = self.changed(index, changed);
        self.report(index, result);
        self.shared.has_read();
    }

    fn changed(&self, index: &Index, changed: &EntriesChanged) -> Result<(), Failure> {
        let ChangedEntries::These(ids) = &changed.entries else { return Ok(()) };
        let mut rows = Vec::with_capacity(ids.len());
        for id in ids.iter() {
            let record = self.shared.entries.entry(changed.agent, *id)?;
            rows.extend(record.map(|record| EntryRow { agent: changed.agent, id: *id, record }));
        }
        self.add(index, rows.iter())
    }

    fn add<'r>(&self, index: &Index, rows: impl Iterator<Item = &'r EntryRow>) -> Result<(), Failure> {
        let docs = rows.filter(|row| row.record.deleted_at.is_none()).map(|row| {
            let key = key_of(row.agent.0.as_bytes(), row.id.0.as_bytes());
            let doc = Doc { key, fingerprint: fingerprint(&row.record) };
            (doc, &*row.record.content, row.record.user.as_deref())
        });
        index.add(docs, &mut |doc| self.is_there(doc)).map_err(Into::into)
    }

    fn is_there(&self, doc: &Doc) -> bool {
        let (agent, id) = ids_of(&doc.key);
        match self.shared.entries.entry(agent, id) {
            Ok(Some(record)) => record.deleted_at.is_none() && fingerprint(&record) == doc.fingerprint,
            Ok(None) => false,
            // It stays until it can be told.
            Err(_) => true,
        }
    }

    /// Compares all rows with the index: adds what it does not have, and writes segments anew that are mostly of what is gone.
    fn compare(&self, index: &Index) -> Result<(), Failure> {
        let began = Instant::now();
        index.flush(&mut |doc| self.is_there(doc))?;
        let segments = index.segments();
        let sources: Vec<Source<'_>> = segments.iter().map(|segment| Source::Segment(segment)).collect();
        let mut known: Vec<Known<'_>> = sources.iter().map(Known::new).collect::<io::Result<_>>()?;
        let (mut after, mut rows, mut added) = (None, 0, 0);
        loop {
            let page = self.shared.entries.entries(None, after, PAGE_ROWS)?;
            let mut missing = Vec::new();
            for row in &page {
                let key = key_of(row.agent.0.as_bytes(), row.id.0.as_bytes());
                let asked = Doc { key, fingerprint: fingerprint(&row.record) };
                let mut is_known = false;
                for segment in &mut known {
                    is_known |= segment.has(&asked)?;
                }
                if !is_known && row.record.deleted_at.is_none() {
                    missing.push(row);
                }
            }
            (rows, added) = (rows + page.len(), added + missing.len());
            self.add(index, missing.into_iter())?;
            let changes = self.changes.len();
            self.changes.try_iter().take(changes).for_each(|changed| self.take(index, &changed));
            match page.last() {
                Some(last) if page.len() == PAGE_ROWS => after = Some((last.agent, last.id)),
                _ => break,
            }
        }
        let found: Vec<u32> = known.into_iter().map(|known| known.found).collect();
        for (segment, found) in segments.iter().zip(found).filter(|(segment, found)| found * 2 < segment.docs()) {
            self.clean(index, segment, found)?;
        }
        if added > TAIL_DOCS as usize {
            tracing::info!(
                rows,
                added,
                ms = began.elapsed().as_millis() as u64,
                "the memory index was brought up to date"
            );
        }
        Ok(())
    }

    /// Writes a segment anew, unless it was merged in the meantime.
    fn clean(&self, index: &Index, segment: &Arc<Segment>, found: u32) -> Result<(), Failure> {
        if !index.segments().iter().any(|present| Arc::ptr_eq(present, segment)) {
            return Ok(());
        }
        tracing::debug!(found, of = segment.docs(), "a file of the memory index is cleaned");
        index.replace(std::slice::from_ref(segment), &mut |doc| self.is_there(doc)).map_err(Into::into)
    }
}

/// The entries of a segment, read beside the rows, which are in the same order.
struct Known<'s> {
    docs: DocReader<'s>,
    found: u32,
}

impl<'s> Known<'s> {
    fn new(source: &Source<'s>) -> io::Result<Self> {
        Ok(Self { docs: DocReader::new(source)?, found: 0 })
    }

    fn has(&mut self, asked: &Doc) -> io::Result<bool> {
        while let Some((doc, _)) = self.docs.next.filter(|(doc, _)| doc.key <= asked.key) {
            self.docs.advance()?;
            if doc == *asked {
                self.found += 1;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Of what is read of an entry.
pub(super) fn fingerprint(record: &MemoryEntryRecord) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(record.content.as_bytes());
    if let Some(user) = &record.user {
        hasher.update(&[0]);
        hasher.update(user.as_bytes());
    }
    hasher.digest()
}

/// The agent and the id of a key.
pub(super) fn ids_of(key: &Key) -> (AgentId, MemoryEntryId) {
    let half = |from: usize| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&key[from..from + 16]);
        Uuid::from_bytes(bytes)
    };
    (AgentId(half(0)), MemoryEntryId(half(16)))
}

/// Why the index could not be updated.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Disk(#[from] io::Error),
    #[error("{0}")]
    Store(#[from] ContentError),
}
