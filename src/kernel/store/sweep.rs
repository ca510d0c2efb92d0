//! Erases what nothing points at any more: the logs of cleared sessions, the traces and memory of removed agents, and
//! the oldest traces of busy agents.
//!
//! Clearing a history is one small write in the world; the rows go here, at leisure, in chunks that the store
//! writer fits into its idle moments. The world keeps a record of every log to sweep until it hears that the log is
//! gone, so a sweep that a kill interrupts is simply done again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use agentsvc_components::agent::sweep::AgentSwept;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::outcome::AnyOutcome;
use agentsvc_components::session::sweep::LogSwept;
use agentsvc_components::{AgentId, LogId, Timestamp};
use agentsvc_systems::kernel::record::{agent_prefixes, log_prefixes, trace_prefix};
use agentsvc_systems::usage::{active_key, usage_range};
use crossbeam_channel::{Receiver, Sender};

use super::writer::{CommitQueue, ERASED_ROWS_MAX};
use super::{Error, Store};

/// What to erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweeping {
    /// Everything of a log.
    Log(LogId),
    /// The traces and the memory of an agent.
    Agent(AgentId),
    /// All traces of an agent but the newest [`limit::TRACES_MAX`].
    Traces(AgentId),
    /// Usage events that are older.
    Usage(Timestamp),
}

/// Erases rows, in its own time, and sends the outcome itself.
pub type Sweep = Arc<dyn Fn(Sweeping) + Send + Sync>;

/// The thread that erases, one thing after the other.
pub struct Sweeper {
    queue: SweepQueue,
    thread: JoinHandle<()>,
}

/// The way to the sweeper. Cheap to clone.
#[derive(Clone)]
pub struct SweepQueue {
    /// What to erase, or the end. Not bounded: a few bytes each, and the world holds a record of each log and agent.
    waiting: Sender<Option<Sweeping>>,
    /// Told to end even in the middle of one.
    stopping: Arc<AtomicBool>,
}

impl SweepQueue {
    /// Asks for rows to be erased; never blocks.
    pub fn sweep(&self, what: Sweeping) {
        // After the stop it waits for the next start, which asks for it again.
        let _ = self.waiting.send(Some(what));
    }
}

impl Sweeper {
    /// Starts the thread; `report` gets an [`LogSwept`] or [`AgentSwept`] for each log and agent
    /// that is gone and must not block.
    pub fn start(
        store: Store,
        commits: CommitQueue,
        report: Arc<dyn Fn(AnyOutcome) + Send + Sync>,
    ) -> Result<Self, Error> {
        let (waiting, incoming) = crossbeam_channel::unbounded();
        let queue = SweepQueue { waiting, stopping: Arc::default() };
        let stopping = queue.stopping.clone();
        let path = store.path.to_path_buf();
        let thread = std::thread::Builder::new()
            .name("store-sweeper".to_owned())
            .spawn(move || run(&Sweeps { store, commits, stopping }, &incoming, &*report))
            .map_err(|source| Error::Io { path, source })?;
        Ok(Self { queue, thread })
    }

    /// The way to this sweeper, for the performer of sweeps.
    pub fn queue(&self) -> SweepQueue {
        self.queue.clone()
    }

    /// Ends the thread after the chunk at hand. To be called before the writer stops.
    pub fn stop(self) {
        self.queue.stopping.store(true, Ordering::Release);
        let _ = self.queue.waiting.send(None);
        if self.thread.join().is_err() {
            tracing::error!("the sweeper panicked");
        }
    }
}

/// What the sweeper's thread works with.
struct Sweeps {
    store: Store,
    commits: CommitQueue,
    stopping: Arc<AtomicBool>,
}

fn run(sweep: &Sweeps, waiting: &Receiver<Option<Sweeping>>, report: &(dyn Fn(AnyOutcome) + Send + Sync)) {
    for what in waiting {
        let Some(what) = what else { return };
        match sweep.erase(what) {
            Ok(Some(rows)) => {
                tracing::debug!(?what, rows, "rows erased");
                match what {
                    Sweeping::Log(log) => report(LogSwept(log).into()),
                    Sweeping::Agent(agent) => report(AgentSwept(agent).into()),
                    Sweeping::Traces(_) | Sweeping::Usage(_) => {}
                }
            }
            Ok(None) | Err(Error::Poisoned) => return,
            // It stays marked in the world; the next start tries again.
            Err(error) => tracing::error!(?what, %error, "rows cannot be erased"),
        }
    }
}

impl Sweeps {
    /// Erases the rows and gives their number; `None` when told to stop before the end.
    fn erase(&self, what: Sweeping) -> Result<Option<u64>, Error> {
        let prefixes: Vec<Vec<u8>> = match what {
            Sweeping::Log(log) => log_prefixes(log).map(|prefix| prefix.to_vec()).collect(),
            Sweeping::Agent(agent) => agent_prefixes(agent).into(),
            Sweeping::Traces(agent) => return self.trim(&trace_prefix(agent)),
            Sweeping::Usage(before) => return self.erase_usage(before),
        };
        let mut rows = 0;
        for prefix in prefixes {
            match self.erase_prefix(&prefix)? {
                Some(erased) => rows += erased,
                None => return Ok(None),
            }
        }
        Ok(Some(rows))
    }

    /// Erases all rows under `prefix` but the last [`limit::TRACES_MAX`]; as [`erase`](Self::erase).
    fn trim(&self, prefix: &[u8]) -> Result<Option<u64>, Error> {
        let mut rows = 0;
        while !self.stopping.load(Ordering::Acquire) {
            let old = self.store.content.prefix(prefix).rev().skip(limit::TRACES_MAX).take(ERASED_ROWS_MAX);
            let keys: Result<Vec<_>, Error> =
                old.map(|entry| Ok(entry.key().map_err(|error| self.store.failed(error))?.to_vec())).collect();
            let keys = keys?;
            let count = keys.len();
            rows += count as u64;
            if count > 0 {
                self.commits.erase(keys)?;
            }
            if count < ERASED_ROWS_MAX {
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }

    /// Erases the usage events of before a moment, and the rows that say who was active on a day; as
    /// [`erase`](Self::erase).
    fn erase_usage(&self, before: Timestamp) -> Result<Option<u64>, Error> {
        let nobody = AgentId(uuid::Uuid::nil());
        let day = before.0.div_euclid(24 * 60 * 60 * 1_000);
        let mut rows = 0;
        for keys in [usage_range(Timestamp(0), before), active_key(0, nobody)..active_key(day, nobody)] {
            let mut from = keys.start;
            loop {
                if self.stopping.load(Ordering::Acquire) {
                    return Ok(None);
                }
                let old = self.store.content.range(from.clone()..keys.end.clone()).take(ERASED_ROWS_MAX);
                let old: Result<Vec<_>, Error> =
                    old.map(|entry| Ok(entry.key().map_err(|error| self.store.failed(error))?.to_vec())).collect();
                let old = old?;
                let Some(last) = old.last() else { break };
                from.clone_from(last);
                from.push(0);
                rows += old.len() as u64;
                self.commits.erase(old)?;
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

/// Up to [`ERASED_ROWS_MAX`] keys that start with `prefix`, from `from` on.
fn chunk(store: &Store, prefix: &[u8], from: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let mut keys = Vec::new();
    for entry in store.content.range(from..).take(ERASED_ROWS_MAX) {
        let key = entry.key().map_err(|error| store.failed(error))?;
        if !key.starts_with(prefix) {
            break;
        }
        keys.push(key.to_vec());
    }
    Ok(keys)
}
