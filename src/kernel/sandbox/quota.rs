//! How much an agent's workspace may hold, and how much it does.
//!
//! What this process writes is counted. What a command writes is measured behind its end, by one thread for all workspaces,
//! and now and then while it runs. So a command that begins needs not wait for a look at every file.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::io::Errno;

use super::config::Workspaces as Limits;
use super::measure::{measure, measure_at};
use super::workspace::Shared;
use crate::kernel::settings::Settings;

/// How long a measure holds at least, for what this process writes; and for a command that begins while what others wrote
/// before it is still to be measured.
const HOLDS: Duration = Duration::from_secs(2);
/// How much longer than it took a measure holds.
const HOLDS_TIMES: u32 = 20;
/// Workspaces of which it is known what they hold. The others are measured before each write and each command.
const KNOWN_MAX: usize = 100_000;

/// What workspaces hold, as far as it is known.
#[derive(Default)]
pub(super) struct Quotas {
    settings: Settings,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: HashMap<PathBuf, Known>,
    /// Workspaces in which commands have ended, to be measured in this order.
    pending: VecDeque<PathBuf>,
    /// There is a thread that measures them.
    is_measuring: bool,
    /// How often a workspace was moved to another directory.
    moves: u64,
}

#[derive(Clone, Copy, Default)]
struct Known {
    /// What was measured, and what this process has written since the measure began.
    bytes: u64,
    /// Everything that this process has ever written.
    written: u64,
    /// When the measure began; `None`: there is none that succeeded.
    measured: Option<Instant>,
    /// How long it holds for what this process writes.
    until: Option<Instant>,
    /// Commands that run in the workspace.
    running: usize,
    /// How many commands have begun and ended in it, and how many of these had when the measure began.
    changes: u64,
    changes_measured: u64,
    /// It waits to be measured behind a command.
    is_pending: bool,
}

impl Known {
    /// Is everything that commands have written in it?
    fn is_whole(&self) -> bool {
        self.measured.is_some() && self.running == 0 && self.changes == self.changes_measured
    }

    /// Takes a change in, unless there would be more than `max`. What is written already counts unless it was measured.
    fn admit(&mut self, change: Change, is_measured: bool, max: u64) -> Result<(), u64> {
        let Change { written, coming, going } = change;
        let unseen = if is_measured { 0 } else { written };
        let bytes = self.bytes.saturating_add(unseen).saturating_add(coming).saturating_sub(going);
        if bytes > max {
            return Err(max);
        }
        self.bytes = bytes;
        self.written = self.written.saturating_add(written).saturating_add(coming);
        Ok(())
    }
}

/// What a write does to what a workspace holds.
#[derive(Clone, Copy, Default)]
pub(super) struct Change {
    /// Bytes that are written already.
    pub(super) written: u64,
    /// Bytes that are to be written.
    pub(super) coming: u64,
    /// Bytes that go.
    pub(super) going: u64,
}

impl fmt::Debug for Quotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quotas").finish_non_exhaustive()
    }
}

impl Quotas {
    /// Those of the configuration in force.
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, state: Mutex::default() }
    }

    /// Bytes that a workspace may hold.
    fn bytes_max(&self) -> u64 {
        self.settings.get::<Limits>().max_bytes
    }

    /// May the workspace in `directory` change like this? `Err` with the quota when it would hold more than that.
    pub(super) fn admit(&self, directory: &Path, root: BorrowedFd<'_>, change: Change) -> Result<(), u64> {
        let max = self.bytes_max();
        let holds = |known: &&mut Known| known.until.is_some_and(|until| Instant::now() < until);
        if let Some(known) = self.state.lock().known.get_mut(directory).filter(holds)
            && known.admit(change, false, max).is_ok()
        {
            return Ok(());
        }
        // One that cannot be measured holds what nobody knows.
        let bytes = self.measured(directory, || measure(root)).map_err(|_| max)?;
        let mut unknown = Known { bytes, ..Known::default() };
        self.state.lock().known.get_mut(directory).unwrap_or(&mut unknown).admit(change, true, max)
    }

    /// A command begins in the workspace, unless it holds more than it may: `Err` with the quota then.
    fn begin(&self, directory: &Path, root: BorrowedFd<'_>) -> Result<(), u64> {
        let max = self.bytes_max();
        let is_new = |known: &Known| known.measured.is_some_and(|began| began.elapsed() < HOLDS);
        let holds = |known: &Known| known.bytes <= max && (known.is_whole() || is_new(known));
        let is_known = self.state.lock().known.get(directory).is_some_and(holds);
        if !is_known && self.measured(directory, || measure(root)).unwrap_or(u64::MAX) > max {
            return Err(max);
        }
        if let Some(known) = self.state.lock().known.get_mut(directory) {
            known.running += 1;
            known.changes += 1;
            known.until = None;
        }
        Ok(())
    }

    /// Measures, and remembers what it finds. What this process writes meanwhile counts, whether it was seen or not.
    fn measured(&self, directory: &Path, measure: impl FnOnce() -> Result<u64, Errno>) -> Result<u64, Errno> {
        let began = Instant::now();
        let (before, moves) = {
            let state = self.state.lock();
            (state.known.get(directory).copied().unwrap_or_default(), state.moves)
        };
        let measured = measure();
        let mut state = self.state.lock();
        let is_moved = state.moves != moves;
        if is_moved || (state.known.len() >= KNOWN_MAX && !state.known.contains_key(directory)) {
            return measured;
        }
        let known = state.known.entry(directory.to_owned()).or_default();
        known.measured = measured.is_ok().then_some(began);
        if let Ok(bytes) = measured {
            known.bytes = bytes.saturating_add(known.written.saturating_sub(before.written));
        }
        if before.running == 0 {
            known.changes_measured = before.changes;
        }
        known.until = known.is_whole().then(|| Instant::now() + HOLDS.max(began.elapsed() * HOLDS_TIMES));
        measured.map(|_| known.bytes)
    }

    /// A command has ended in the workspace. True when a thread must be started that measures.
    fn end(&self, directory: &Path) -> bool {
        let mut state = self.state.lock();
        let Some(known) = state.known.get_mut(directory) else { return false };
        known.running = known.running.saturating_sub(1);
        known.changes += 1;
        if !std::mem::replace(&mut known.is_pending, true) {
            state.pending.push_back(directory.to_owned());
        }
        !std::mem::replace(&mut state.is_measuring, true)
    }

    /// Measures the workspaces in which commands have ended, one after the other.
    fn measure_pending(&self) {
        loop {
            let mut state = self.state.lock();
            let Some(directory) = state.pending.pop_front() else {
                state.is_measuring = false;
                return;
            };
            if let Some(known) = state.known.get_mut(&directory) {
                known.is_pending = false;
            }
            drop(state);
            // Where it fails, the next command or write measures.
            let _ = self.measured(&directory, || measure_at(&directory));
        }
    }

    /// What the workspace in `directory` holds is to be measured before the next write.
    pub(super) fn forget(&self, directory: &Path) {
        if let Some(known) = self.state.lock().known.get_mut(directory) {
            known.until = None;
        }
    }

    /// The workspace in `from` is in `to` now: what was known of either is known no more.
    pub(super) fn moved(&self, from: &Path, to: &Path) {
        let mut state = self.state.lock();
        state.moves += 1;
        for directory in [from, to] {
            state.known.remove(directory);
        }
    }
}

/// A workspace in which a command runs. It is measured when this goes.
#[derive(Debug)]
pub struct CommandWorkspace {
    path: PathBuf,
    shared: Arc<Shared>,
}

impl CommandWorkspace {
    /// A command begins in the workspace at `path`; `Err` with its quota when it is full.
    pub(super) fn begin(path: &Path, root: BorrowedFd<'_>, shared: &Arc<Shared>) -> Result<Self, u64> {
        shared.quotas.begin(path, root)?;
        Ok(Self { path: path.to_owned(), shared: Arc::clone(shared) })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Does it hold more than it may? Blocks until every file in it was looked at.
    ///
    /// # Errors
    /// Those of [`measure`].
    pub(super) fn is_full(&self) -> Result<bool, Errno> {
        let quotas = &self.shared.quotas;
        Ok(quotas.measured(&self.path, || measure_at(&self.path))? > quotas.bytes_max())
    }
}

impl Drop for CommandWorkspace {
    fn drop(&mut self) {
        if !self.shared.quotas.end(&self.path) {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let measure = move || shared.quotas.measure_pending();
        if thread::Builder::new().name("measure".to_owned()).spawn(measure).is_err() {
            // The next end tries it again; until then, commands and writes measure.
            self.shared.quotas.state.lock().is_measuring = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use agentsvc_components::AgentId;
    use uuid::Uuid;

    use super::*;
    use crate::kernel::sandbox::{Workspaces, Write};

    #[test]
    fn what_is_written_while_it_is_measured_counts() {
        let (dir, quotas) = (tempfile::tempdir().unwrap(), Quotas::default());
        let root = File::open(dir.path()).unwrap();
        let write = |written| quotas.admit(dir.path(), root.as_fd(), Change { written, ..Change::default() });
        quotas.measured(dir.path(), || Ok(1)).unwrap();
        let measured = quotas.measured(dir.path(), || {
            write(5).unwrap();
            Ok(10)
        });
        assert_eq!(measured, Ok(15));
        assert!(quotas.measured(dir.path(), || Err(Errno::IO)).is_err());
        assert_eq!(quotas.measured(dir.path(), || Ok(3)), Ok(3));
    }

    #[test]
    fn small_files_that_are_written_again_count_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let w = Workspaces::new(dir.path().join("workspaces")).open(AgentId(Uuid::from_u128(1)), "ann").unwrap();
        let bytes = || w.shared.quotas.state.lock().known[w.path()].bytes;
        w.write("a", b"x", Write::Overwrite).unwrap();
        w.write("b", &[7; 64 << 10], Write::Overwrite).unwrap();
        let before = bytes();
        for _ in 0..10 {
            w.write("a", b"y", Write::Overwrite).unwrap();
        }
        assert_eq!(bytes(), before);
    }
}
