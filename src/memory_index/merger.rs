//! The thread that writes the segments of the index and merges them, however long that takes. The one that takes changes goes on
//! meanwhile, and so do searches.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::worker::{RETRY, Shared};

/// The thread. It ends with the sender of orders.
pub(super) struct Merger {
    pub(super) shared: Arc<Shared>,
    /// Says that there may be something to do.
    pub(super) orders: Receiver<()>,
}

impl Merger {
    /// Works until there are no more orders. What the disk refuses is tried again after a pause.
    pub(super) fn run(&self) {
        let mut has_failed = false;
        while self.wait(has_failed) {
            let ordered = self.shared.progress.ordered();
            let worked = self.work();
            has_failed = worked.is_err();
            match worked {
                Ok(()) => self.shared.moved(|progress| progress.merged.store(ordered, Ordering::Release)),
                Err(error) => {
                    let dir = self.shared.index.dir().display();
                    tracing::error!(%error, %dir, "the memory index could not be written");
                }
            }
        }
    }

    /// Waits for an order or, after a failure, for its pause. Gives false when there are no more orders.
    fn wait(&self, has_failed: bool) -> bool {
        if !has_failed {
            return self.orders.recv().is_ok();
        }
        let end = Instant::now() + RETRY;
        loop {
            match self.orders.recv_deadline(end) {
                Ok(()) => {}
                Err(error) => return error == RecvTimeoutError::Timeout,
            }
        }
    }

    fn work(&self) -> io::Result<()> {
        let index = &self.shared.index;
        let checks = self.shared.checks_tails.swap(false, Ordering::AcqRel);
        index.write_sealed(&mut |doc| !checks || self.shared.is_there(doc))?;
        let spent = std::mem::take(&mut *self.shared.spent.lock());
        for segment in spent {
            // Unless it was merged in the meantime.
            if index.segments().iter().any(|present| Arc::ptr_eq(present, &segment)) {
                tracing::debug!(docs = segment.docs(), "a file of the memory index is cleaned");
                index.replace(std::slice::from_ref(&segment), &mut |doc| self.shared.is_there(doc))?;
            }
        }
        index.merge(&mut |doc| self.shared.is_there(doc))
    }
}
