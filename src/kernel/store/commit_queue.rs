//! The way to the writer: what waits for it, and whether it takes more.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::record::Op;
use agentsvc_systems::kernel::engine::Commit;
use crossbeam_channel::Sender;

use super::Error;
use crate::kernel::free_space;

/// Bytes counted for each record beside its key and value.
const OP_OVERHEAD_BYTES: usize = 64;
/// Bytes that are free for what must be on record: more than the writer waits for, as more than one may be under way.
const LAST_ROOM_BYTES: u64 = 2 * limit::COMMIT_ROOM_BYTES;
/// Rows erased in one go: few enough for the writer not to keep a commit waiting for long.
pub(crate) const ERASED_ROWS_MAX: usize = 1_024;

/// Work for the writer's thread, in order.
pub(super) enum Message {
    /// A step of the world, the bytes counted for it, and when it was handed over.
    Commit(Box<Commit>, usize, Instant),
    /// Answer when everything before this is durable and let go.
    Flush(Sender<()>),
    /// End after this.
    Stop,
}

/// Rows to erase at leisure.
pub(super) struct Erasure {
    /// Keys in the content keyspace.
    pub(super) keys: Vec<Vec<u8>>,
    /// Answered when they are erased.
    pub(super) done: Sender<()>,
}

/// What the writer and its callers share.
#[derive(Default)]
pub(super) struct Backlog {
    /// Bytes of commits that are not yet durable.
    pub(super) bytes: AtomicUsize,
    /// A write has failed; no more is taken.
    pub(super) poisoned: AtomicBool,
    /// Another node owns the world: that is why a write has failed.
    pub(super) fenced: AtomicBool,
    /// The disk has no room for changes.
    pub(super) read_only: AtomicBool,
    /// It had none at some time.
    pub(super) was_read_only: AtomicBool,
    /// What is to be stored now waits for room on the disk.
    pub(super) waiting: AtomicBool,
    /// What waits for room on the disk is tried without.
    pub(super) impatient: AtomicBool,
}

impl Backlog {
    /// The disk has, or has no more, room for changes.
    pub(super) fn set_read_only(&self, read_only: bool) {
        self.read_only.store(read_only, Ordering::Release);
        self.was_read_only.fetch_or(read_only, Ordering::AcqRel);
    }
}

/// The way to the writer. Cheap to clone.
#[derive(Clone)]
pub struct CommitQueue {
    pub(super) messages: Sender<Message>,
    pub(super) erasures: Sender<Erasure>,
    pub(super) backlog: Arc<Backlog>,
    /// Where the store is.
    pub(super) path: Arc<Path>,
}

impl CommitQueue {
    /// Hands over the commit of one step; never blocks. Once a write has failed it is let fall, unreleased.
    pub fn send(&self, commit: Commit) {
        let late = commit.late.iter().map(|late| OP_OVERHEAD_BYTES + late.bytes());
        let bytes = commit.ops.iter().map(op_bytes).chain(late).sum();
        self.backlog.bytes.fetch_add(bytes, Ordering::AcqRel);
        // The receiver is gone only after a failure, when nothing may be released, or after the stop.
        let _ = self.messages.send(Message::Commit(Box::new(commit), bytes, Instant::now()));
    }

    /// Bytes of commits that are not yet durable.
    pub fn backlog_bytes(&self) -> usize {
        self.backlog.bytes.load(Ordering::Acquire)
    }

    /// True while writing commands must be refused: too much waits, or the store has failed.
    pub fn is_full(&self) -> bool {
        self.backlog_bytes() >= limit::STORE_BACKLOG_BYTES_MAX || self.backlog.poisoned.load(Ordering::Acquire)
    }

    /// True when another node owns the world: nothing is taken any more, and this world is to be ended.
    pub fn is_fenced(&self) -> bool {
        self.backlog.fenced.load(Ordering::Acquire)
    }

    /// The disk has, or has no more, room for changes.
    pub(crate) fn set_read_only(&self, read_only: bool) {
        self.backlog.set_read_only(read_only);
    }

    /// True while the disk has no room for changes.
    pub fn is_read_only(&self) -> bool {
        self.backlog.read_only.load(Ordering::Acquire)
    }

    /// Does what is to be stored now wait for room on the disk?
    pub(crate) fn waits_for_room(&self) -> bool {
        self.backlog.waiting.load(Ordering::Acquire)
    }

    /// Has a full disk still room for what must be on record, without a wait?
    pub(crate) fn has_last_room(&self) -> bool {
        let has_room = free_space::free_bytes(&self.path).is_ok_and(|free| free >= LAST_ROOM_BYTES);
        has_room && !self.waits_for_room()
    }

    /// Nobody frees any more: what waits for room on the disk is tried without, and may fail.
    pub(crate) fn wait_no_more(&self) {
        self.backlog.impatient.store(true, Ordering::Release);
    }

    /// Waits until everything sent so far is durable and let go.
    ///
    /// # Errors
    /// [`Error::Poisoned`] when a write has failed or the writer has stopped.
    pub fn flush(&self) -> Result<(), Error> {
        let (done, wait) = crossbeam_channel::bounded(1);
        self.messages.send(Message::Flush(done)).map_err(|_| Error::Poisoned)?;
        wait.recv().map_err(|_| Error::Poisoned)
    }

    /// Erases up to 1,024 rows of the content keyspace when the writer has an idle moment, and waits for
    /// it. They are gone for readers then, and durably so with the next commit.
    ///
    /// # Errors
    /// [`Error::Poisoned`] when a write has failed or the writer has stopped.
    pub fn erase(&self, keys: Vec<Vec<u8>>) -> Result<(), Error> {
        debug_assert!(keys.len() <= ERASED_ROWS_MAX);
        let (done, wait) = crossbeam_channel::bounded(1);
        self.erasures.send(Erasure { keys, done }).map_err(|_| Error::Poisoned)?;
        wait.recv().map_err(|_| Error::Poisoned)
    }
}

/// Bytes counted for one record.
fn op_bytes(op: &Op) -> usize {
    OP_OVERHEAD_BYTES + op.key.len() + op.value.as_ref().map_or(0, Vec::len)
}
