//! Erases logs that no session points at any more.
//!
//! Clearing a history is one small write in the world; the rows go here, at leisure, in chunks that the store
//! writer fits into its idle moments. The world keeps a record of every log to sweep until it hears that the log is
//! gone, so a sweep that a kill interrupts is simply done again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use agentsvc_components::LogId;
use agentsvc_components::outcome::OutcomeKind;
use agentsvc_systems::record::log_prefixes;
use crossbeam_channel::{Receiver, Sender};

use super::writer::CommitQueue;
use super::{Error, Store};

/// Rows erased in one go: few enough for the writer not to keep a commit waiting for long.
const CHUNK_ROWS: usize = 1_024;

/// The thread that erases logs, one after the other.
pub struct Sweeper {
    queue: SweepQueue,
    thread: JoinHandle<()>,
}

/// The way to the sweeper. Cheap to clone.
#[derive(Clone)]
pub struct SweepQueue {
    /// Logs to erase, or the end. Not bounded: 8 bytes each, and the world holds a record of every one of them.
    logs: Sender<Option<LogId>>,
    /// Told to end even in the middle of a log.
    stopping: Arc<AtomicBool>,
}

impl SweepQueue {
    /// Asks for the rows of `log` to be erased; never blocks.
    pub fn sweep(&self, log: LogId) {
        // After the stop a log waits for the next start, which asks for it again.
        let _ = self.logs.send(Some(log));
    }
}

impl Sweeper {
    /// Starts the thread; `report` gets an [`OutcomeKind::Swept`] for each log that is gone and must not block.
    ///
    /// # Errors
    /// [`Error::Io`] when the system gives no thread.
    pub fn start(
        store: Store,
        commits: CommitQueue,
        report: Arc<dyn Fn(OutcomeKind) + Send + Sync>,
    ) -> Result<Self, Error> {
        let (logs, incoming) = crossbeam_channel::unbounded();
        let queue = SweepQueue { logs, stopping: Arc::default() };
        let stopping = queue.stopping.clone();
        let path = store.path.to_path_buf();
        let thread = std::thread::Builder::new()
            .name("store-sweeper".to_owned())
            .spawn(move || run(&Sweep { store, commits, stopping }, &incoming, &*report))
            .map_err(|source| Error::Io { path, source })?;
        Ok(Self { queue, thread })
    }

    /// The way to this sweeper, for the performer of `Effect::Sweep`.
    #[must_use]
    pub fn queue(&self) -> SweepQueue {
        self.queue.clone()
    }

    /// Ends the thread after the chunk at hand. To be called before the writer stops.
    pub fn stop(self) {
        self.queue.stopping.store(true, Ordering::Release);
        let _ = self.queue.logs.send(None);
        if self.thread.join().is_err() {
            tracing::error!("the sweeper ended in a panic");
        }
    }
}

/// What the sweeper's thread works with.
struct Sweep {
    store: Store,
    commits: CommitQueue,
    stopping: Arc<AtomicBool>,
}

fn run(sweep: &Sweep, logs: &Receiver<Option<LogId>>, report: &(dyn Fn(OutcomeKind) + Send + Sync)) {
    for log in logs {
        let Some(log) = log else { return };
        match sweep.erase(log) {
            Ok(Some(rows)) => {
                tracing::debug!(log = log.0, rows, "log erased");
                report(OutcomeKind::Swept(log));
            }
            Ok(None) | Err(Error::Poisoned) => return,
            // The log stays marked in the world; the next start tries again.
            Err(error) => tracing::error!(log = log.0, %error, "log cannot be erased"),
        }
    }
}

impl Sweep {
    /// Erases all rows of `log` and gives their number; `None` when told to stop before the end.
    fn erase(&self, log: LogId) -> Result<Option<u64>, Error> {
        let mut rows = 0;
        for prefix in log_prefixes(log) {
            match self.erase_prefix(&prefix)? {
                Some(erased) => rows += erased,
                None => return Ok(None),
            }
        }
        Ok(Some(rows))
    }

    /// Erases all rows whose keys start with `prefix`; as [`erase`](Self::erase).
    fn erase_prefix(&self, prefix: &[u8]) -> Result<Option<u64>, Error> {
        let mut from = prefix.to_vec();
        let mut rows = 0;
        while !self.stopping.load(Ordering::Acquire) {
            // Each chunk has a snapshot of its own, so that none is held while the writer works.
            let keys = chunk(&self.store, prefix, &from)?;
            let Some(last) = keys.last() else { return Ok(Some(rows)) };
            // Behind the last key, so that the next chunk does not walk over what was erased.
            from.clone_from(last);
            from.push(0);
            rows += keys.len() as u64;
            self.commits.erase(keys)?;
        }
        Ok(None)
    }
}

/// Up to [`CHUNK_ROWS`] keys that start with `prefix`, from `from` on.
fn chunk(store: &Store, prefix: &[u8], from: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let mut keys = Vec::new();
    for entry in store.content.range(from..).take(CHUNK_ROWS) {
        let key = entry.key().map_err(|error| store.failed(error))?;
        if !key.starts_with(prefix) {
            break;
        }
        keys.push(key.to_vec());
    }
    Ok(keys)
}
