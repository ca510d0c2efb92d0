//! The thread that keeps the index up to date. There is none until there are many entries. Another [merges](super::merger), so
//! that what changes is found while segments are written.
//!
//! It is told which entries changed, and reads their rows. What it was not told, because it did not run or because too much came
//! at once, it finds by comparing all rows with the index, a page at a time between what it is told. So an index that is missing
//! or damaged is built by the same walk that finds a single entry.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use agentsvc_api::http::error::ContentError;
use agentsvc_api::proactive_memory::store::{EntryRow, EntryStore};
use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::change::{ChangedEntries, EntriesChanged};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError};
use uuid::Uuid;

use super::index::{Behind, Index, SEALED_MAX, Snapshot, TAIL_DOCS, fingerprint, key_of};
use super::merger::Merging;
use super::progress::Shared;
use super::segment::{Doc, DocReader, Source};

/// Changes that wait at most. More: all rows are compared.
const CHANGES_MAX: usize = 4_096;
/// Rows that are compared at once; changes are taken in between.
const PAGE_ROWS: usize = 250;
/// How often a walk looks whether full tails were written.
const WRITTEN_POLL: Duration = Duration::from_millis(5);
/// The same when it waits for long.
const WRITTEN_POLL_MAX: Duration = if cfg!(test) { Duration::from_millis(20) } else { Duration::from_secs(1) };
/// How long nothing changes before what is in memory goes to the disk.
const IDLE: Duration = Duration::from_secs(30);
/// How long after a failure it is tried again.
pub(super) const RETRY: Duration = if cfg!(test) { Duration::from_millis(20) } else { Duration::from_secs(10) };

/// The index, and the thread that keeps it.
pub(super) struct Worker {
    shared: Arc<Shared>,
    changes: OnceLock<Option<Sender<EntriesChanged>>>,
}

impl Worker {
    /// No thread yet.
    pub(super) fn new(entries: Arc<dyn EntryStore>, dir: PathBuf) -> Self {
        Self { shared: Arc::new(Shared::new(entries, dir)), changes: OnceLock::new() }
    }

    /// Was there an index before?
    pub(super) fn has_folder(&self) -> bool {
        self.shared.index.dir().exists()
    }

    /// Starts the threads, when there are none.
    pub(super) fn begin(&self) {
        self.changes.get_or_init(|| start(&self.shared));
    }

    /// Is something of the index there to be searched, now?
    pub(super) fn is_there(&self) -> bool {
        self.shared.progress.loaded.load(Ordering::Acquire) && !self.shared.is_missing()
    }

    /// Changes that it was told so far.
    pub(super) fn told(&self) -> u64 {
        self.shared.progress.told()
    }

    /// Does the index have all rows, and so many changes that it was told?
    pub(super) fn is_complete(&self, told: u64) -> bool {
        let progress = &self.shared.progress;
        progress.compared() >= progress.stale() && progress.read() >= told
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
        // First: who compares from now on sees no merge that began before.
        self.shared.index.begin_generation();
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
        let is_missing = || self.shared.is_missing();
        let is_behind = || progress.read() < told || (is_missing() && !progress.failed());
        let mut waiting = waiting.lock();
        while is_behind() && !moved.wait_until(&mut waiting, until).timed_out() {}
        (!is_missing() || !progress.failed()).then_some(index)
    }

    /// Waits until all rows were compared, and segments were written and merged.
    #[cfg(test)]
    pub(super) fn compared(&self) -> Option<&Index> {
        self.changes.get_or_init(|| start(&self.shared)).as_ref()?;
        let Shared { index, progress, waiting, moved, .. } = &*self.shared;
        let merged = || progress.merged.load(Ordering::Acquire);
        let is_behind = || progress.compared() < progress.stale() || progress.read() < progress.told();
        let mut waiting = waiting.lock();
        while is_behind() || merged() < progress.ordered() {
            moved.wait(&mut waiting);
        }
        Some(index)
    }

    /// Has what it was told so far written.
    #[cfg(test)]
    pub(super) fn seal(&self) {
        self.index(Duration::from_secs(60)).expect("an index").seal();
        self.mark_stale();
    }

    /// Entries and bytes of the index, 0 where there is none. Never blocks.
    pub(super) fn size(&self) -> (u64, u64) {
        (self.shared.index.docs(), self.shared.index.bytes())
    }
}

fn start(shared: &Arc<Shared>) -> Option<Sender<EntriesChanged>> {
    let (sender, changes) = crossbeam_channel::bounded(CHANGES_MAX);
    let keeper = |merging| Keeper { shared: Arc::clone(shared), changes, merging, retry: Cell::new(None) };
    let thread = std::thread::Builder::new().name("memory-index".to_owned());
    let started = Merging::start(Arc::clone(shared)).map(keeper);
    match started.and_then(|keeper| thread.spawn(move || keeper.run())) {
        Ok(_) => Some(sender),
        Err(error) => {
            tracing::error!(%error, "the thread of the memory index could not be started");
            None
        }
    }
}

/// The thread. It ends with the last sender.
struct Keeper {
    shared: Arc<Shared>,
    changes: Receiver<EntriesChanged>,
    /// Writes and merges segments.
    merging: Merging,
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
                self.report(compared);
                self.merging.order();
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
                    index.seal();
                    self.merging.order();
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
        self.shared.moved(|progress| {
            progress.failed.store(loaded.is_err(), Ordering::Release);
            progress.loaded.store(loaded.is_ok(), Ordering::Release);
        });
        loaded.is_ok()
    }

    /// What failed is tried again with a walk after a pause.
    fn report(&self, result: Result<(), Failure>) {
        let Err(failure) = result else { return };
        self.shared.progress.stale.fetch_add(1, Ordering::AcqRel);
        self.retry.set(Some(Instant::now() + RETRY));
        if failure.is_lasting() {
            tracing::error!(error = %failure, "the memory index could not be updated");
        }
    }

    fn take(&self, index: &Index, changed: &EntriesChanged) {
        let result = self.changed(index, changed);
        self.report(result);
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
        let added = index.add(docs);
        if index.sealed() > 0 {
            self.merging.order();
        }
        added.map_err(Into::into)
    }

    /// Compares all rows with the index: adds what it does not have, and has segments written anew that are mostly of what is
    /// gone.
    fn compare(&self, index: &Index) -> Result<(), Failure> {
        let began = Instant::now();
        let Snapshot { segments, unwritten } = index.snapshot();
        let sources: Vec<Source<'_>> = segments.iter().map(|segment| Source::Segment(segment)).collect();
        let mut known: Vec<Known<'_>> = sources.iter().map(Known::new).collect::<io::Result<_>>()?;
        let (mut after, mut rows, mut added, mut found_unwritten) = (None, 0, 0, 0);
        loop {
            let page = self.shared.entries.entries(None, after, PAGE_ROWS)?;
            let mut missing = Vec::new();
            for row in &page.rows {
                let key = key_of(row.agent.0.as_bytes(), row.id.0.as_bytes());
                let asked = Doc { key, fingerprint: fingerprint(&row.record) };
                let mut is_known = unwritten.contains(&asked);
                found_unwritten += usize::from(is_known);
                for segment in &mut known {
                    is_known |= segment.has(&asked)?;
                }
                if !is_known && row.record.deleted_at.is_none() {
                    missing.push(row);
                }
            }
            (rows, added) = (rows + page.rows.len(), added + missing.len());
            self.wait_for_disk(index)?;
            self.add(index, missing.into_iter())?;
            let changes = self.changes.len();
            self.changes.try_iter().take(changes).for_each(|changed| self.take(index, &changed));
            after = page.next();
            if after.is_none() {
                break;
            }
        }
        let found: Vec<u32> = known.into_iter().map(|known| known.found).collect();
        let spent = segments.iter().zip(found).filter(|(segment, found)| found * 2 < segment.docs());
        if found_unwritten * 2 < unwritten.len() {
            index.seal();
            self.shared.checks_tails.store(true, Ordering::Release);
        }
        *self.shared.spent.lock() = spent.map(|(segment, _)| Arc::clone(segment)).collect();
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

    /// Takes only what changes while full tails wait to be written: the walk leaves place for it. Looks less and less often, and
    /// says so where it takes long.
    fn wait_for_disk(&self, index: &Index) -> Result<(), Failure> {
        let (mut pause, begun, mut is_told) = (WRITTEN_POLL, Instant::now(), false);
        while index.sealed() + 1 >= SEALED_MAX {
            // The thread that writes may have ended.
            self.merging.order();
            if !is_told && begun.elapsed() >= RETRY {
                is_told = true;
                tracing::error!(dir = %index.dir().display(), "the memory index waits for the disk");
                self.shared.moved(|progress| progress.failed.store(true, Ordering::Release));
            }
            match self.changes.recv_timeout(pause) {
                Ok(changed) => self.take(index, &changed),
                Err(RecvTimeoutError::Timeout) => pause = (pause * 2).min(WRITTEN_POLL_MAX),
                Err(RecvTimeoutError::Disconnected) => return Err(Behind.into()),
            }
        }
        Ok(())
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

/// Why the index could not be updated.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Disk(#[from] io::Error),
    #[error("{0}")]
    Store(#[from] ContentError),
    #[error("{0}")]
    Behind(#[from] Behind),
}

impl Failure {
    /// Is it more than that one world is taking the place of another, or that the disk is slow?
    fn is_lasting(&self) -> bool {
        !matches!(self, Self::Store(ContentError::Exchanging) | Self::Behind(_))
    }
}
