//! How far a backup or restore is; read by anyone while it runs.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use super::error::Error;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Nothing.
    Idle,
    /// Rows are counted.
    Counting,
    /// Entries are packed.
    Packing,
    /// An archive is unpacked and checked.
    Checking,
    /// What would change is found out.
    Comparing,
    /// A new store is built.
    Building,
    /// The new takes the place of the old.
    Exchanging,
}

impl Phase {
    const ALL: [Self; 7] =
        [Self::Idle, Self::Counting, Self::Packing, Self::Checking, Self::Comparing, Self::Building, Self::Exchanging];

    /// Its word in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Counting => "counting",
            Self::Packing => "packing",
            Self::Checking => "checking",
            Self::Comparing => "comparing",
            Self::Building => "building",
            Self::Exchanging => "exchanging",
        }
    }
}

/// How far it is.
#[derive(Debug, Default)]
pub struct Progress {
    phase: AtomicU8,
    /// Bytes done in this phase.
    done: AtomicU64,
    /// Bytes there are in this phase; 0 while nobody knows.
    total: AtomicU64,
    /// It is to give up.
    stop: AtomicBool,
}

impl Progress {
    /// A phase of `total` bytes begins.
    pub(crate) fn begin(&self, phase: Phase, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// So many bytes more are done.
    ///
    /// # Errors
    /// [`Error::Stopped`]: there is no more time.
    pub(super) fn add(&self, bytes: u64) -> Result<(), Error> {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }

    /// What is being done.
    #[must_use]
    pub fn phase(&self) -> Phase {
        let phase = self.phase.load(Ordering::Relaxed);
        Phase::ALL.into_iter().find(|known| *known as u8 == phase).unwrap_or(Phase::Idle)
    }

    /// Bytes done in this phase, and bytes there are; 0 while nobody knows.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Has what runs give up soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
