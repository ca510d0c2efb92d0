//! The thread that keeps the index up to date. There is none until there are many entries.
//!
//! It is told which entries changed, and reads their rows. What it was not told, because it did not run or because too much came
//! at once, it finds by comparing all rows with the index, a page at a time between what it is told. So an index that is missing
//! or damaged is built by the same walk that finds a single entry.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
/// How long after a failure it is tried again.
const RETRY: Duration = if cfg!(test) { Duration::from_millis(20) } else { Duration::from_secs(10) };

/// The index, and the thread that keeps it.
pub(super) struct Worker {
    shared: Arc<Shared>,
    changes: OnceLock<Option<Sender<EntriesChanged>>>,
}

/// What the thread and searches share.
struct Shared {
    entries: Arc<dyn EntryStore>,
    index: Index,
    progress: Progress,
    /// Searches wait with it for the progress. Those who tell of changes never take it.
    waiting: Mutex<()>,
    moved: Condvar,
}

/// How far the thread has come.
#[derive(Debug)]
struct Progress {
    /// Changes that it was told, and those that it has read.
    told: AtomicU64,
    read: AtomicU64,
    /// How often all rows had to be compared, and were.
    stale: AtomicU64,
    compared: AtomicU64,
    /// Could it not be opened or built, the last time?
    failed: AtomicBool,
}

impl Default for Progress {
    fn default() -> Self {
        let [told, read, compared] = [0; 3].map(AtomicU64::new);
        Self { told, read, stale: AtomicU64::new(1), compared, failed: AtomicBool::new(false) }
    }
}

impl Progress {
    fn told(&self) -> u64 {
        self.told.load(Ordering::Acquire)
    }

    fn read(&self) -> u64 {
        self.read.load(Ordering::Acquire)
    }

    fn stale(&self) -> u64 {
        self.stale.load(Ordering::Acquire)
    }

    fn compared(&self) -> u64 {
        self.compared.load(Ordering::Acquire)
    }

    fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

impl Worker {
    /// No thread yet.
    pub(super) fn new(entries: Arc<dyn EntryStore>, dir: PathBuf) -> Self {
        let (index, progress) = (Index::new(dir), Progress::default());
        let shared = Shared { entries, index, progress, waiting: Mutex::new(()), moved: Condvar::new() };
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
        let progress = &self.shared.progress;
        progress.told.fetch_add(1, Ordering::AcqRel);
        if let Err(error) = changes.try_send(changed.clone()) {
            if let TrySendError::Full(_) = error {
                progress.stale.fetch_add(1, Ordering::AcqRel);
            }
            // Searches hear of it with the next change that is read.
            progress.read.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Other rows are in the store than before.
    pub(super) fn mark_stale(&self) {
        self.shared.progress.stale.fetch_add(1, Ordering::AcqRel);
        // It wakes up and looks.
        let nothing = ChangedEntries::These(Arc::default());
        self.tell(&EntriesChanged { agent: AgentId(Uuid::nil()), number: 0, entries: nothing });
    }

    /// The index with all that was told before; starts the thread when there is none. Waits for at most so long: an index that
    /// is being opened or built answers from what it has. `None` when it cannot be opened or built.
    pub(super) fn index(&self, longest: Duration) -> Option<&Index> {
        self.changes.get_or_init(|| start(&self.shared)).as_ref()?;
        let until = Instant::now() + longest;
        let Shared { index, progress, waiting, moved, .. } = &*self.shared;
        let told = progress.told();
        let is_missing = || progress.compared() == 0 && index.docs() == 0;
        let is_behind = || progress.read() < told || (is_missing() && !progress.failed());
        let mut waiting = waiting.lock();
        while is_behind() && !moved.wait_until(&mut waiting, until).timed_out() {}
        (!is_missing() || !progress.failed()).then_some(index)
    }

    /// Waits until all rows were compared.
    #[cfg(test)]
    pub(super) fn compared(&self) -> Option<&Index> {
        self.changes.get_or_init(|| start(&self.shared)).as_ref()?;
        let Shared { index, progress, waiting, moved, .. } = &*self.shared;
        let mut waiting = waiting.lock();
        while progress.compared() < progress.stale() || progress.read() < progress.told() {
            moved.wait(&mut waiting);
        }
        Some(index)
    }

    /// Entries and bytes of the index, 0 where there is none. Never blocks.
    pub(super) fn size(&self) -> (u64, u64) {
        (self.shared.index.docs(), self.shared.index.bytes())
    }
}

fn start(shared: &Arc<Shared>) -> Option<Sender<EntriesChanged>> {
    let (sender, changes) = crossbeam_channel::bounded(CHANGES_MAX);
    let keeper = Keeper { shared: Arc::clone(shared), changes, retry: Cell::new(None) };
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
    /// Changes the progress, and lets searches look.
    fn moved(&self, change: impl FnOnce(&Progress)) {
        let waiting = self.waiting.lock();
        change(&self.progress);
        drop(waiting);
        self.moved.notify_all();
    }

    fn has_read(&self) {
        self.moved(|progress| {
            progress.read.fetch_add(1, Ordering::AcqRel);
        });
    }
}

/// The thread. It ends with the last sender.
struct Keeper {
    shared: Arc<Shared>,
    changes: Receiver<EntriesChanged>,
    /// When what failed is tried again.
    retry: Cell<Option<Instant>>,
}

impl Keeper {
    fn run(&self) {
        let index = &self.shared.index;
        let mut is_loaded = false;
        loop {
            if !is_loaded && self.is_due() {
                is_loaded = self.load(index);
            }
            let stale = self.shared.progress.stale();
            if is_loaded && self.is_due() && self.shared.progress.compared() < stale {
                let compared = self.compare(index);
                let (is_compared, failed) =
                    (compared.is_ok(), compared.as_ref().err().is_some_and(Failure::is_lasting));
                self.report(index, compared);
                self.shared.moved(|progress| {
                    progress.failed.store(failed, Ordering::Release);
                    if is_compared {
                        progress.compared.store(stale, Ordering::Release);
                    }
                });
                // More may have become stale meanwhile.
                continue;
            }
            let pause = self.retry.get().map_or(IDLE, |at| at.saturating_duration_since(Instant::now()));
            match self.changes.recv_timeout(pause) {
                Ok(changed) if is_loaded => self.take(index, &changed),
                // All rows are compared later.
                Ok(_) => self.shared.has_read(),
                Err(RecvTimeoutError::Timeout) if self.retry.get().is_none() => {
                    let flushed = index.flush(&mut |doc| self.is_there(doc)).map_err(Into::into);
                    self.report(index, flushed);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// May it be tried, or has it failed just now?
    fn is_due(&self) -> bool {
        let is_due = self.retry.get().is_none_or(|at| at <= Instant::now());
        if is_due {
            self.retry.set(None);
        }
        is_due
    }

    fn load(&self, index: &Index) -> bool {
        let loaded = index.load();
        if let Err(error) = &loaded {
            tracing::error!(%error, dir = %index.dir().display(), "the memory index cannot be opened");
            self.retry.set(Some(Instant::now() + RETRY));
        }
        self.shared.moved(|progress| progress.failed.store(loaded.is_err(), Ordering::Release));
        loaded.is_ok()
    }

    /// What failed is tried again with a walk after a pause.
    fn report(&self, index: &Index, result: Result<(), Failure>) {
        let Err(failure) = result else { return };
        self.shared.progress.stale.fetch_add(1, Ordering::AcqRel);
        self.retry.set(Some(Instant::now() + RETRY));
        if !failure.is_lasting() {
            return;
        }
        tracing::error!(error = %failure, "the memory index could not be updated");
        if let Failure::Disk(_) = failure {
            index.drop_tail();
        }
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

impl Failure {
    /// Is it more than that one world is taking the place of another?
    fn is_lasting(&self) -> bool {
        !matches!(self, Self::Store(ContentError::Exchanging))
    }
}
