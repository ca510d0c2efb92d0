//! How far a backup or restore is; read by anyone while it runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::error::Error;

/// Progress.
#[derive(Debug, Default)]
pub struct Progress {
    /// What is being done: a word of answers, or nothing.
    phase: Mutex<&'static str>,
    /// Processed bytes of this phase.
    done: AtomicU64,
    /// Total bytes of this phase; 0 if unknown.
    total: AtomicU64,
    /// It is to give up.
    stop: AtomicBool,
}

impl Progress {
    /// A phase of `total` bytes begins.
    pub(crate) fn begin(&self, phase: &'static str, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        *self.phase.lock() = phase;
    }

    /// So many bytes more are done.
    pub(super) fn add(&self, bytes: u64) -> Result<(), Error> {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }

    /// What is being done.
    pub fn phase(&self) -> &'static str {
        let phase = *self.phase.lock();
        if phase.is_empty() { "idle" } else { phase }
    }

    /// Bytes done in this phase, and bytes there are; 0 while nobody knows.
    pub fn bytes(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Has what runs give up soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
