//! Room on the disk: what is to be stored waits for it, and an engine that found none is opened anew when there is some.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use agentsvc_components::kernel::limit;

use crate::kernel::free_space;
use crate::kernel::store::commit_queue::Backlog;
use crate::kernel::store::{Error, is_full};

/// Why a store that takes no more is opened anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// It found no room on the disk. There is some by now.
    Full,
    /// Something in it failed, for this reason.
    Failed(String),
}

/// Time between two looks for room.
const POLL: Duration = Duration::from_millis(50);
/// A store that was open for less is not opened anew without reserve, nor where it is not known that it lacked room.
const SETTLED: Duration = Duration::from_secs(60);

/// The room of one opened store.
pub(super) struct Room {
    pub(super) backlog: Arc<Backlog>,
    pub(super) path: Arc<Path>,
    opened: Instant,
}

impl Room {
    pub(super) fn new(backlog: Arc<Backlog>, path: Arc<Path>) -> Self {
        Self { backlog, path, opened: Instant::now() }
    }

    /// Waits until the disk has room for a batch: an engine that finds none cannot go on.
    pub(super) fn wait_for(&self, bytes: usize) {
        self.wait(limit::COMMIT_ROOM_BYTES.saturating_add(2 * bytes as u64));
        self.backlog.waiting.store(false, Ordering::Release);
    }

    /// The engine cannot go on after this error. If it is for want of room, waits until there is some; then nothing is lost by
    /// opening the store anew. `None`: it is for another reason, or nobody frees any more.
    pub(super) fn may_reopen(&self, error: &Error) -> Option<Stuck> {
        let stuck = match error {
            // One of the engine's own threads has failed, and it does not say why.
            Error::Poisoned if self.backlog.was_read_only.load(Ordering::Acquire) => Stuck::Full,
            Error::Poisoned if self.is_settled() => Stuck::Failed(error.to_string()),
            error if is_full(error) => Stuck::Full,
            _ => return None,
        };
        if stuck == Stuck::Full {
            tracing::error!(%error, "the store found no room on the disk: changes are refused, and it is opened anew when there is room");
        } else {
            tracing::error!(%error, "the store failed: changes are refused, and it is opened anew");
        }
        self.refuse();
        std::thread::sleep(POLL);
        let reserve = if self.is_settled() { 0 } else { limit::STORE_RESERVE_BYTES };
        self.wait(limit::STORE_ROOM_BYTES + reserve);
        (!self.backlog.impatient.load(Ordering::Acquire)).then_some(stuck)
    }

    fn is_settled(&self) -> bool {
        self.opened.elapsed() >= SETTLED
    }

    /// Changes are refused from here on: large batches need more than what the disk is watched for.
    fn refuse(&self) {
        self.backlog.waiting.store(true, Ordering::Release);
        self.backlog.set_read_only(true);
    }

    fn wait(&self, needed: u64) {
        let is_tight = || free_space::free_bytes(&self.path).is_ok_and(|free| free < needed);
        while !self.backlog.impatient.load(Ordering::Acquire) && is_tight() {
            self.refuse();
            std::thread::sleep(POLL);
        }
    }
}
