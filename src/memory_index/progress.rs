//! What the threads of the index and searches share, and how far the threads have come.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use agentsvc_api::proactive_memory::store::EntryStore;
use parking_lot::{Condvar, Mutex};

use super::index::{Index, fingerprint, ids_of};
use super::segment::{Doc, Segment};

/// What the threads and searches share.
pub(super) struct Shared {
    pub(super) entries: Arc<dyn EntryStore>,
    pub(super) index: Index,
    pub(super) progress: Progress,
    /// Are the tails mostly of what is gone? Else they are written as they are.
    pub(super) checks_tails: AtomicBool,
    /// Segments that are mostly of what is gone, and are to be written anew. As many as there are segments.
    pub(super) spent: Mutex<Vec<Arc<Segment>>>,
    /// Searches wait with it for the progress. Those who tell of changes never take it.
    pub(super) waiting: Mutex<()>,
    pub(super) moved: Condvar,
}

/// How far the thread has come.
#[derive(Debug)]
pub(super) struct Progress {
    /// Changes that it was told, and those that it has read.
    pub(super) told: AtomicU64,
    pub(super) read: AtomicU64,
    /// How often all rows had to be compared, and were.
    pub(super) stale: AtomicU64,
    pub(super) compared: AtomicU64,
    /// How often segments had to be written or merged, and were.
    pub(super) ordered: AtomicU64,
    pub(super) merged: AtomicU64,
    /// Could it not be opened or built, the last time?
    pub(super) failed: AtomicBool,
    /// Are the files that were there open?
    pub(super) loaded: AtomicBool,
}

impl Default for Progress {
    fn default() -> Self {
        let [told, read, compared, ordered, merged] = [0; 5].map(AtomicU64::new);
        let [failed, loaded] = [false; 2].map(AtomicBool::new);
        Self { told, read, stale: AtomicU64::new(1), compared, ordered, merged, failed, loaded }
    }
}

impl Progress {
    pub(super) fn told(&self) -> u64 {
        self.told.load(Ordering::Acquire)
    }

    pub(super) fn read(&self) -> u64 {
        self.read.load(Ordering::Acquire)
    }

    pub(super) fn stale(&self) -> u64 {
        self.stale.load(Ordering::Acquire)
    }

    pub(super) fn compared(&self) -> u64 {
        self.compared.load(Ordering::Acquire)
    }

    pub(super) fn ordered(&self) -> u64 {
        self.ordered.load(Ordering::Acquire)
    }

    pub(super) fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

impl Shared {
    /// Of this store and this folder.
    pub(super) fn new(entries: Arc<dyn EntryStore>, dir: PathBuf) -> Self {
        let (index, progress) = (Index::new(dir), Progress::default());
        let (checks_tails, spent, waiting, moved) = Default::default();
        Self { entries, index, progress, checks_tails, spent, waiting, moved }
    }

    /// Is nothing in the index: it was not opened, or not one entry was compared?
    pub(super) fn is_missing(&self) -> bool {
        self.progress.compared() == 0 && self.index.docs() == 0
    }

    /// Changes the progress, and lets searches look.
    pub(super) fn moved(&self, change: impl FnOnce(&Progress)) {
        let waiting = self.waiting.lock();
        change(&self.progress);
        drop(waiting);
        self.moved.notify_all();
    }

    pub(super) fn has_read(&self) {
        self.moved(|progress| {
            progress.read.fetch_add(1, Ordering::AcqRel);
        });
    }

    /// Does the store have this entry as the index knows it?
    pub(super) fn is_there(&self, doc: &Doc) -> bool {
        let (agent, id) = ids_of(&doc.key);
        match self.entries.entry(agent, id) {
            Ok(Some(record)) => record.deleted_at.is_none() && fingerprint(&record) == doc.fingerprint,
            Ok(None) => false,
            // It stays until it can be told.
            Err(_) => true,
        }
    }
}
