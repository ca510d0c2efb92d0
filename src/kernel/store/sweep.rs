//! Erases rows that nothing points at any more, at leisure, in chunks that the store writer fits into its idle moments.
//!
//! Clearing something is one small write in the world, and its rows go here. A domain that keeps a record of what is to
//! be erased until it hears that it is gone has a sweep that a kill interrupts done again.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use agentsvc_components::kernel::outcome::AnyOutcome;
use crossbeam_channel::{Receiver, Sender};

use super::writer::{CommitQueue, ERASED_ROWS_MAX};
use super::{Error, Store};

/// What to erase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// All rows whose keys start with one of these.
    Under(Vec<Vec<u8>>),
    /// All rows whose keys start with the prefix but so many of the last.
    AllButLast(Vec<u8>, usize),
    /// All rows in these ranges of keys.
    Between(Vec<Range<Vec<u8>>>),
}

type Keys = Vec<Vec<u8>>;

/// Names rows that go with one, given its key and value.
type Companions = fn(&[u8], &[u8]) -> Keys;

/// What to erase, and what the world is told when it is gone.
pub struct Sweeping {
    /// What to erase.
    pub rows: Rows,
    /// Names further rows that go with one of those, given its key and value; `None`: there are none, and no value is read.
    companions: Option<Companions>,
    done: Option<AnyOutcome>,
}

impl Sweeping {
    /// Erases `rows`, and tells nobody.
    pub fn of(rows: Rows) -> Self {
        Self { rows, companions: None, done: None }
    }

    /// Erases `rows`, and tells the world `done` when they are gone.
    pub fn telling(rows: Rows, done: impl Into<AnyOutcome>) -> Self {
        Self { done: Some(done.into()), ..Self::of(rows) }
    }

    /// Erases with each row under a prefix those that `companions` names.
    #[must_use]
    pub fn with(self, companions: Companions) -> Self {
        Self { companions: Some(companions), ..self }
    }
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
    /// What to erase, or the end. Not bounded: a few bytes each.
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
    /// Starts the thread; `report` gets what the world is to be told and must not block.
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
        match sweep.erase(&what.rows, what.companions) {
            Ok(Some(rows)) => {
                tracing::debug!(what = ?what.rows, rows, "rows erased");
                if let Some(done) = what.done {
                    report(done);
                }
            }
            Ok(None) | Err(Error::Poisoned) => return,
            // It stays marked in the world; the next start tries again.
            Err(error) => tracing::error!(what = ?what.rows, %error, "rows cannot be erased"),
        }
    }
}

impl Sweeps {
    /// Erases the rows and gives their number; `None` when told to stop before the end.
    fn erase(&self, what: &Rows, companions: Option<Companions>) -> Result<Option<u64>, Error> {
        match what {
            Rows::Under(prefixes) => self.each(prefixes, |prefix| self.erase_prefix(prefix, companions)),
            Rows::AllButLast(prefix, keep) => self.trim(prefix, *keep),
            Rows::Between(ranges) => self.each(ranges, |range| self.erase_range(range)),
        }
    }

    /// Erases part after part; as [`erase`](Self::erase).
    fn each<P>(&self, parts: &[P], erase: impl Fn(&P) -> Result<Option<u64>, Error>) -> Result<Option<u64>, Error> {
        let mut rows = 0;
        for part in parts {
            match erase(part)? {
                Some(erased) => rows += erased,
                None => return Ok(None),
            }
        }
        Ok(Some(rows))
    }

    /// Erases all rows under `prefix` but the last `keep`; as [`erase`](Self::erase).
    fn trim(&self, prefix: &[u8], keep: usize) -> Result<Option<u64>, Error> {
        let mut rows = 0;
        while !self.stopping.load(Ordering::Acquire) {
            let old = self.store.content.prefix(prefix).rev().skip(keep).take(ERASED_ROWS_MAX);
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

    /// Erases all rows in a range of keys; as [`erase`](Self::erase).
    fn erase_range(&self, range: &Range<Vec<u8>>) -> Result<Option<u64>, Error> {
        let (mut from, mut rows) = (range.start.clone(), 0);
        while !self.stopping.load(Ordering::Acquire) {
            let old = self.store.content.range(from.clone()..range.end.clone()).take(ERASED_ROWS_MAX);
            let old: Result<Vec<_>, Error> =
                old.map(|entry| Ok(entry.key().map_err(|error| self.store.failed(error))?.to_vec())).collect();
            let old = old?;
            let Some(last) = old.last() else { return Ok(Some(rows)) };
            from.clone_from(last);
            from.push(0);
            rows += old.len() as u64;
            self.commits.erase(old)?;
        }
        Ok(None)
    }

    /// Erases all rows whose keys start with `prefix`; as [`erase`](Self::erase).
    fn erase_prefix(&self, prefix: &[u8], companions: Option<Companions>) -> Result<Option<u64>, Error> {
        let mut from = prefix.to_vec();
        let mut rows = 0;
        while !self.stopping.load(Ordering::Acquire) {
            // Each chunk has a snapshot of its own, so that none is held while the writer works.
            let (keys, mut beside) = chunk(&self.store, prefix, &from, companions)?;
            let Some(last) = keys.last() else { return Ok(Some(rows)) };
            // Behind the last key, so that the next chunk does not walk over what was erased.
            from.clone_from(last);
            from.push(0);
            rows += (keys.len() + beside.len()) as u64;
            // First what leads to a row: after a kill in between, the row still names it.
            while !beside.is_empty() {
                self.commits.erase(beside.split_off(beside.len().saturating_sub(ERASED_ROWS_MAX)))?;
            }
            self.commits.erase(keys)?;
        }
        Ok(None)
    }
}

/// Up to [`ERASED_ROWS_MAX`] keys that start with `prefix`, from `from` on, and the keys of the rows that go with them.
fn chunk(store: &Store, prefix: &[u8], from: &[u8], companions: Option<Companions>) -> Result<(Keys, Keys), Error> {
    let (mut keys, mut beside) = (Vec::new(), Vec::new());
    for entry in store.content.range(from..).take(ERASED_ROWS_MAX) {
        let (key, found) = match companions {
            Some(companions) => {
                let (key, value) = entry.into_inner().map_err(|error| store.failed(error))?;
                let found = if key.starts_with(prefix) { companions(&key, &value) } else { Vec::new() };
                (key, found)
            }
            None => (entry.key().map_err(|error| store.failed(error))?, Vec::new()),
        };
        if !key.starts_with(prefix) {
            break;
        }
        beside.extend(found);
        keys.push(key.to_vec());
    }
    Ok((keys, beside))
}
