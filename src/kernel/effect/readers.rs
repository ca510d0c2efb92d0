//! A few threads that read content for model calls.
//!
//! Reads touch the disk, so they belong neither on the writer thread nor on a tokio worker. Threads of our own instead
//! of `spawn_blocking`: a burst of calls would make tokio start hundreds, and one hop is cheaper than two.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use crossbeam_channel::{Receiver, Sender};

/// Threads that read. Warm reads take microseconds; the others keep a cold log from delaying every other call.
const READERS: usize = 3;

/// One read and what follows from it.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// The threads, started by the first job. They end when this is dropped. The queue is bounded by what admission lets
/// out ([`agentsvc_components::kernel::limit::EFFECTS_OUT_MAX`]).
#[derive(Default)]
pub(crate) struct Readers {
    jobs: OnceLock<Sender<Job>>,
}

impl Readers {
    /// Queues a job. Never blocks.
    pub(crate) fn submit(&self, job: Job) {
        // The receivers live as long as their threads, which only end when this sender is gone. Without any thread (the
        // system refuses more) the job comes back and runs here: slow beats lost.
        if let Err(refused) = self.jobs.get_or_init(start).send(job) {
            run(refused.into_inner());
        }
    }
}

fn start() -> Sender<Job> {
    let (sender, jobs) = crossbeam_channel::unbounded();
    for number in 0..READERS {
        let jobs: Receiver<Job> = jobs.clone();
        let started = std::thread::Builder::new()
            .name(format!("content-reader-{number}"))
            .spawn(move || jobs.iter().for_each(run));
        if let Err(error) = started {
            tracing::warn!(%error, "a content reader could not be started");
        }
    }
    sender
}

fn run(job: Job) {
    // The panic itself is reported by the hook, and the call's reply by its own drop.
    if catch_unwind(AssertUnwindSafe(job)).is_err() {
        tracing::error!("a content reader's job panicked");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::Readers;

    #[test]
    fn a_panic_does_not_end_the_readers() {
        let readers = Readers::default();
        let (sender, receiver) = mpsc::channel();
        for number in 0..20 {
            let sender = sender.clone();
            readers.submit(Box::new(move || {
                assert!(number % 2 == 1, "as the test wants it");
                sender.send(number).unwrap();
            }));
        }
        let mut seen: Vec<i32> = receiver.iter().take(10).collect();
        seen.sort_unstable();
        assert_eq!(seen, [1, 3, 5, 7, 9, 11, 13, 15, 17, 19]);
    }
}
