//! The thread that writes the segments of the index and merges them, however long that takes. The one that takes changes goes on
//! meanwhile, and so do searches.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError};

use super::progress::Shared;
use super::worker::RETRY;

/// Has segments written and merged; the thread ends with it. One that ended by itself is noticed, and started anew.
pub(super) struct Merging {
    shared: Arc<Shared>,
    orders: RefCell<Sender<()>>,
    /// When it may be started again.
    retry: Cell<Option<Instant>>,
}

impl Merging {
    /// Starts the thread.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(shared: Arc<Shared>) -> io::Result<Self> {
        let orders = RefCell::new(spawn(&shared)?);
        Ok(Self { shared, orders, retry: Cell::new(None) })
    }

    /// Has segments written and merged, where there is something to do.
    pub(super) fn order(&self) {
        self.shared.progress.ordered.fetch_add(1, Ordering::AcqRel);
        // One order that waits stands for all.
        let sent = self.orders.borrow().try_send(());
        if matches!(sent, Err(TrySendError::Disconnected(()))) {
            self.start_again();
        }
    }

    fn start_again(&self) {
        if self.retry.get().is_some_and(|at| at > Instant::now()) {
            return;
        }
        self.retry.set(Some(Instant::now() + RETRY));
        tracing::error!("the thread that writes the memory index ended; it is started again");
        let started = spawn(&self.shared);
        match started {
            Ok(orders) => {
                let _waits = orders.try_send(());
                *self.orders.borrow_mut() = orders;
            }
            Err(error) => {
                tracing::error!(%error, "the thread that writes the memory index cannot be started");
                self.shared.moved(|progress| progress.failed.store(true, Ordering::Release));
            }
        }
    }
}

fn spawn(shared: &Arc<Shared>) -> io::Result<Sender<()>> {
    let (sender, orders) = crossbeam_channel::bounded(1);
    let merger = Merger { shared: Arc::clone(shared), orders };
    std::thread::Builder::new().name("memory-merge".to_owned()).spawn(move || merger.run())?;
    Ok(sender)
}

/// The thread. It ends with the sender of orders.
struct Merger {
    shared: Arc<Shared>,
    /// Says that there may be something to do.
    orders: Receiver<()>,
}

impl Merger {
    /// Works until there are no more orders. What the disk refuses is tried again after a pause.
    fn run(&self) {
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

#[cfg(test)]
mod tests {
    use super::super::segment::Doc;
    use super::super::testing::Rows;
    use super::*;

    #[test]
    fn a_thread_that_ended_is_started_again() {
        let dir = tempfile::tempdir().unwrap();
        let shared = Arc::new(Shared::new(Arc::new(Rows::default()), dir.path().to_owned()));
        shared.index.load().unwrap();
        shared.index.add([(Doc { key: [1; 32], fingerprint: 1 }, "a zebra", None)]).unwrap();
        shared.index.seal();
        let (orders, ended) = crossbeam_channel::bounded(1);
        drop(ended);
        let merging = Merging { shared: Arc::clone(&shared), orders: RefCell::new(orders), retry: Cell::new(None) };
        merging.order();
        let mut waiting = shared.waiting.lock();
        while shared.progress.merged.load(Ordering::Acquire) == 0 {
            shared.moved.wait(&mut waiting);
        }
        assert_eq!((shared.index.sealed(), shared.index.segments().len()), (0, 1));
    }
}
