//! What the clients did, and which answers were not as they must be.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::support::http::Reply;

/// Answers that are shown at the end, of those that must not be.
const EXAMPLES_MAX: usize = 20;
/// Bytes of each that are shown.
const EXAMPLE_BYTES_MAX: usize = 300;

/// Counts; shared by all clients.
#[derive(Default)]
pub(crate) struct Tally {
    kinds: Mutex<BTreeMap<&'static str, u64>>,
    failures: AtomicU64,
    strange: AtomicU64,
    late: AtomicU64,
    examples: Mutex<Vec<String>>,
}

impl Tally {
    /// Counts an answer; one whose status is none of `expected` is a failure of the run.
    pub(crate) fn count(&self, kind: &'static str, reply: &Reply, expected: &[u16]) {
        *lock(&self.kinds).entry(kind).or_default() += 1;
        if !expected.contains(&reply.status) {
            let counter = if reply.status >= 500 { &self.failures } else { &self.strange };
            counter.fetch_add(1, Ordering::Relaxed);
            self.show(format!("{kind}: {} {}", reply.status, reply.text()));
        }
    }

    /// Counts something that went well without an answer of its own.
    pub(crate) fn well(&self, kind: &'static str) {
        *lock(&self.kinds).entry(kind).or_default() += 1;
    }

    /// Counts something that went wrong without an answer: a connection that broke, a stream that ended.
    pub(crate) fn broke(&self, kind: &'static str, how: &str) {
        *lock(&self.kinds).entry(kind).or_default() += 1;
        self.strange.fetch_add(1, Ordering::Relaxed);
        self.show(format!("{kind}: {how}"));
    }

    /// Counts a call that began late.
    pub(crate) fn was_late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    fn show(&self, mut example: String) {
        example.truncate(example.floor_char_boundary(EXAMPLE_BYTES_MAX));
        eprintln!("{example}");
        let mut examples = lock(&self.examples);
        if examples.len() < EXAMPLES_MAX {
            examples.push(example);
        }
    }

    /// Everything that was done.
    pub(crate) fn done(&self) -> u64 {
        lock(&self.kinds).values().sum()
    }

    /// How often each kind of call was made.
    pub(crate) fn kinds(&self) -> String {
        let kinds: Vec<_> = lock(&self.kinds).iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        kinds.join(", ")
    }

    /// Answers with 5xx that must not be.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Other answers that must not be.
    pub(crate) fn strange(&self) -> u64 {
        self.strange.load(Ordering::Relaxed)
    }

    /// Calls that began late.
    pub(crate) fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// Some of the answers that must not be.
    pub(crate) fn examples(&self) -> Vec<String> {
        lock(&self.examples).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
