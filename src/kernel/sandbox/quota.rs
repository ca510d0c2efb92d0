//! How much an agent's workspace may hold, how much all of them may hold together, and how much they do.
//!
//! What this process writes is counted. What a command writes is measured behind its end, by one thread for all workspaces,
//! and now and then while it runs. So a command that begins needs not wait for a look at every file. What all hold is the
//! sum of what is known of each. The thread measures those that are there once, after the first write or command.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use agentsvc_components::kernel::holder::Holder;
use parking_lot::Mutex;
use rustix::io::Errno;

use super::config::Workspaces as Limits;
use super::holders::noted_holder;
use super::measure::{measure, measure_at};
use crate::kernel::settings::Settings;

mod command;

pub use command::CommandWorkspace;

/// How long a measure holds at least, for what this process writes; and for a command that begins while what others wrote
/// before it is still to be measured.
const HOLDS: Duration = Duration::from_secs(2);
/// How much longer than it took a measure holds.
const HOLDS_TIMES: u32 = 20;
/// Workspaces of which it is known what they hold. The others are measured before each write and each command, and are not
/// in the total.
const KNOWN_MAX: usize = 100_000;
/// Time after which all workspaces are measured again while the total is too large: files may be gone by other hands.
const COUNT_EVERY: Duration = Duration::from_secs(600);

/// What workspaces hold, as far as it is known. Cheap to clone.
#[derive(Clone)]
pub(super) struct Quotas {
    settings: Settings,
    /// Where the workspaces are.
    root: PathBuf,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    known: HashMap<PathBuf, Known>,
    /// What all of these hold together.
    total: u64,
    /// What those of each family or user hold together; none is 0.
    shares: HashMap<Holder, u64>,
    /// What commands hold in each beside what is measured: files without a name that they have open, by command.
    unnamed: HashMap<PathBuf, BTreeMap<u64, u64>>,
    /// The number of the next command.
    next: u64,
    /// Those in which something was deleted that no measure since has left out, and which deletion was the last.
    shrunk: BTreeMap<PathBuf, u64>,
    /// How many deletions there were.
    deletions: u64,
    /// Workspaces in which commands have ended, to be measured in this order.
    pending: VecDeque<PathBuf>,
    /// When it was begun to count all workspaces.
    counted: Option<Instant>,
    /// They are still to be listed for that.
    is_unlisted: bool,
    /// Those that are still to be measured for that.
    uncounted: Vec<PathBuf>,
    /// There is a thread that measures.
    is_measuring: bool,
    /// How often a workspace was moved to another directory.
    moves: u64,
}

#[derive(Clone, Copy, Default)]
struct Known {
    /// What was measured, and what this process has written since the measure began.
    bytes: u64,
    /// Whose share it takes, where that is known.
    holder: Option<Holder>,
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

/// What would be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quota {
    /// The bytes of one workspace.
    Workspace(u64),
    /// The bytes of the workspaces of one family or user.
    Share(u64),
    /// The bytes of all workspaces.
    Total(u64),
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

impl Change {
    /// What a workspace holds afterwards, beside others that hold so much together.
    fn of(self, bytes: u64, others: Sums, limits: &Limits) -> Result<u64, Quota> {
        let Self { written, coming, going } = self;
        let bytes = bytes.saturating_add(written).saturating_add(coming).saturating_sub(going);
        if bytes > limits.max_bytes {
            return Err(Quota::Workspace(limits.max_bytes));
        }
        let sum = |others: u64| others.saturating_add(bytes);
        Sums { total: sum(others.total), share: others.share.map(sum) }.check(limits).map(|()| bytes)
    }
}

/// What workspaces hold together.
#[derive(Clone, Copy)]
struct Sums {
    /// All of them.
    total: u64,
    /// Those of the same family or user, where that is known.
    share: Option<u64>,
}

impl Sums {
    /// Is that more than there may be?
    fn check(self, limits: &Limits) -> Result<(), Quota> {
        if self.share.is_some_and(|share| share > limits.max_share_bytes) {
            return Err(Quota::Share(limits.max_share_bytes));
        }
        if self.total > limits.max_total_bytes { Err(Quota::Total(limits.max_total_bytes)) } else { Ok(()) }
    }
}

impl Known {
    /// Is everything that commands have written in it?
    fn is_whole(&self) -> bool {
        self.measured.is_some() && self.running == 0 && self.changes == self.changes_measured
    }
}

impl State {
    /// Sets what a workspace holds, and the total with it.
    fn set(&mut self, directory: &Path, bytes: u64) {
        let Some(known) = self.known.get_mut(directory) else { return };
        let (before, holder) = (std::mem::replace(&mut known.bytes, bytes), known.holder);
        self.total = self.total.saturating_sub(before).saturating_add(bytes);
        self.count_for(holder, before, bytes);
    }

    /// A holder has so much in place of so much.
    fn count_for(&mut self, holder: Option<Holder>, before: u64, now: u64) {
        let Some(holder) = holder else { return };
        let share = self.shares.get(&holder).copied().unwrap_or_default();
        match share.saturating_sub(before).saturating_add(now) {
            0 => self.shares.remove(&holder),
            share => self.shares.insert(holder, share),
        };
    }

    /// What a workspace holds counts for this holder from here on.
    fn hold(&mut self, directory: &Path, holder: Holder) {
        if self.known.len() >= KNOWN_MAX && !self.known.contains_key(directory) {
            return;
        }
        let known = self.known.entry(directory.to_owned()).or_default();
        let (before, bytes) = (known.holder.replace(holder), known.bytes);
        self.count_for(before, bytes, 0);
        self.count_for(Some(holder), 0, bytes);
    }

    /// What all workspaces hold, and those of the holder of one, but for so much of this one.
    fn sums(&self, directory: &Path, but: u64) -> Sums {
        let holder = self.known.get(directory).and_then(|known| known.holder);
        let share = holder.map(|holder| self.shares.get(&holder).copied().unwrap_or_default());
        Sums { total: self.total.saturating_sub(but), share: share.map(|share| share.saturating_sub(but)) }
    }

    fn remove(&mut self, directory: &Path) {
        self.set(directory, 0);
        self.known.remove(directory);
    }

    /// Takes a change in, unless there would be too much. What is written already is in what was measured, or is not.
    fn admit(&mut self, directory: &Path, change: Change, is_measured: bool, limits: &Limits) -> Result<(), Quota> {
        let unseen = if is_measured { Change { written: 0, ..change } } else { change };
        let before = self.known.get(directory).map_or(0, |known| known.bytes);
        let bytes = unseen.of(before, self.sums(directory, before), limits)?;
        self.set(directory, bytes);
        if let Some(known) = self.known.get_mut(directory) {
            known.written = known.written.saturating_add(change.written).saturating_add(change.coming);
        }
        Ok(())
    }
}

impl fmt::Debug for Quotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quotas").finish_non_exhaustive()
    }
}

impl Quotas {
    /// Those of the configuration in force, for the workspaces in `root`.
    pub(super) fn new(root: PathBuf, settings: Settings) -> Self {
        Self { settings, root, state: Arc::default() }
    }

    fn limits(&self) -> Arc<Limits> {
        self.settings.get::<Limits>()
    }

    /// May the workspace in `directory` change like this?
    pub(super) fn admit(&self, directory: &Path, root: BorrowedFd<'_>, change: Change) -> Result<(), Quota> {
        let limits = self.limits();
        self.count(Duration::MAX);
        let holds = |known: &Known| known.until.is_some_and(|until| Instant::now() < until);
        {
            let mut state = self.state.lock();
            if state.known.get(directory).is_some_and(holds) && state.admit(directory, change, false, &limits).is_ok() {
                return Ok(());
            }
        }
        // One that cannot be measured holds what nobody knows.
        let bytes = self.measured(directory, || measure(root)).map_err(|_| Quota::Workspace(limits.max_bytes))?;
        let admit = || {
            let mut state = self.state.lock();
            if state.known.contains_key(directory) {
                return state.admit(directory, change, true, &limits);
            }
            Change { written: 0, ..change }.of(bytes, state.sums(directory, 0), &limits).map(drop)
        };
        let admitted = match admit() {
            Err(Quota::Share(_) | Quota::Total(_)) if self.measure_shrunk() => admit(),
            admitted => admitted,
        };
        if matches!(admitted, Err(Quota::Share(_) | Quota::Total(_))) {
            self.count(COUNT_EVERY);
        }
        admitted
    }

    /// Is there more in all workspaces together than there may be, or in those of the holder of one?
    fn check_sums(&self, directory: &Path) -> Result<(), Quota> {
        let limits = self.limits();
        let check = || self.state.lock().sums(directory, 0).check(&limits);
        if check().is_ok() || (self.measure_shrunk() && check().is_ok()) {
            return Ok(());
        }
        self.count(COUNT_EVERY);
        check()
    }

    /// Is it known that the workspace takes the share of this holder?
    pub(super) fn is_held(&self, directory: &Path, holder: Holder) -> bool {
        self.state.lock().known.get(directory).is_some_and(|known| known.holder == Some(holder))
    }

    /// The workspace takes the share of this holder from here on.
    pub(super) fn hold(&self, directory: &Path, holder: Holder) {
        self.state.lock().hold(directory, holder);
    }

    /// A command begins in the workspace, unless there is too much already. Gives what it holds.
    fn begin(&self, directory: &Path, root: BorrowedFd<'_>) -> Result<u64, Quota> {
        let max = self.limits().max_bytes;
        self.count(Duration::MAX);
        let is_new = |known: &Known| known.measured.is_some_and(|began| began.elapsed() < HOLDS);
        let holds = |known: &&Known| known.bytes <= max && (known.is_whole() || is_new(known));
        let known = self.state.lock().known.get(directory).filter(holds).map(|known| known.bytes);
        let measured = || self.measured(directory, || measure(root)).ok().filter(|bytes| *bytes <= max);
        let bytes = known.or_else(measured).ok_or(Quota::Workspace(max))?;
        self.check_sums(directory)?;
        if let Some(known) = self.state.lock().known.get_mut(directory) {
            known.running += 1;
            known.changes += 1;
            known.until = None;
        }
        Ok(bytes)
    }

    /// Measures, and remembers what it finds. What this process writes meanwhile counts, whether it was seen or not.
    fn measured(&self, directory: &Path, measure: impl FnOnce() -> Result<u64, Errno>) -> Result<u64, Errno> {
        let began = Instant::now();
        let (before, moves, deletion) = {
            let state = self.state.lock();
            let known = state.known.get(directory).copied().unwrap_or_default();
            (known, state.moves, state.shrunk.get(directory).copied())
        };
        let measured = measure();
        let is_new = before.holder.is_none() && !self.state.lock().known.contains_key(directory);
        let holder = if is_new { noted_holder(&self.root, directory) } else { None };
        let mut state = self.state.lock();
        let measured = measured.map(|bytes| bytes.saturating_add(state.unnamed(directory)));
        // The mark stays until here: others that find too much must not take the old number for the new one meanwhile.
        if deletion.is_some() && state.shrunk.get(directory).copied() == deletion {
            state.shrunk.remove(directory);
        }
        // One that began later has seen more.
        if state.known.get(directory).and_then(|known| known.measured).is_some_and(|other| other > began) {
            return measured;
        }
        let is_moved = state.moves != moves;
        if is_moved || (state.known.len() >= KNOWN_MAX && !state.known.contains_key(directory)) {
            return measured;
        }
        if let Some(holder) = holder.filter(|_| !state.known.contains_key(directory)) {
            state.hold(directory, holder);
        }
        let known = state.known.entry(directory.to_owned()).or_default();
        known.measured = measured.is_ok().then_some(began);
        if before.running == 0 {
            known.changes_measured = before.changes;
        }
        known.until = known.is_whole().then(|| Instant::now() + HOLDS.max(began.elapsed() * HOLDS_TIMES));
        let meanwhile = known.written.saturating_sub(before.written);
        let bytes = measured?.saturating_add(meanwhile);
        state.set(directory, bytes);
        Ok(bytes)
    }

    /// Measures the workspaces in which something was deleted. False when there were none.
    fn measure_shrunk(&self) -> bool {
        let shrunk: Vec<PathBuf> = self.state.lock().shrunk.keys().cloned().collect();
        for directory in &shrunk {
            // Where it fails, what was known before is what counts.
            let _ = self.measured(directory, || measure_at(directory));
        }
        !shrunk.is_empty()
    }

    /// Begins to measure all workspaces, unless that was begun less than `since` ago.
    fn count(&self, since: Duration) {
        let mut state = self.state.lock();
        if state.counted.is_some_and(|begun| begun.elapsed() < since) {
            return;
        }
        state.counted = Some(Instant::now());
        state.is_unlisted = true;
        drop(state);
        self.start();
    }

    /// A command has ended in the workspace.
    fn end(&self, directory: &Path) {
        let mut state = self.state.lock();
        let Some(known) = state.known.get_mut(directory) else { return };
        known.running = known.running.saturating_sub(1);
        known.changes += 1;
        if !std::mem::replace(&mut known.is_pending, true) {
            state.pending.push_back(directory.to_owned());
        }
        drop(state);
        self.start();
    }

    /// Starts the thread that measures, unless there is one.
    fn start(&self) {
        if std::mem::replace(&mut self.state.lock().is_measuring, true) {
            return;
        }
        let quotas = self.clone();
        if thread::Builder::new().name("measure".to_owned()).spawn(move || quotas.run()).is_err() {
            // The next start tries it again; until then, commands and writes measure.
            self.state.lock().is_measuring = false;
        }
    }

    /// Measures what is to be measured, one workspace after the other.
    fn run(&self) {
        while let Some(directory) = self.next() {
            let measured = self.measured(&directory, || measure_at(&directory));
            if measured == Err(Errno::NOENT) && fs::symlink_metadata(&directory).is_err() {
                self.state.lock().remove(&directory);
            }
        }
    }

    /// The next workspace to measure; `None`: there is none, and the thread ends.
    fn next(&self) -> Option<PathBuf> {
        loop {
            let mut state = self.state.lock();
            if !std::mem::take(&mut state.is_unlisted) {
                let pending = state.pending.pop_front();
                if let Some(known) = pending.as_ref().and_then(|directory| state.known.get_mut(directory)) {
                    known.is_pending = false;
                }
                let next = pending.or_else(|| state.uncounted.pop());
                state.is_measuring = next.is_some();
                return next;
            }
            drop(state);
            let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
            let is_workspace = |entry: &fs::DirEntry| {
                !entry.file_name().as_encoded_bytes().starts_with(b".")
                    && entry.file_type().is_ok_and(|kind| kind.is_dir())
            };
            let mut uncounted: BTreeSet<PathBuf> = entries.filter(is_workspace).map(|entry| entry.path()).collect();
            let mut state = self.state.lock();
            uncounted.extend(state.known.keys().cloned());
            state.uncounted = uncounted.into_iter().collect();
        }
    }

    /// Something was deleted in the workspace in `directory`.
    pub(super) fn forget(&self, directory: &Path) {
        let mut state = self.state.lock();
        state.deletions += 1;
        let deletion = state.deletions;
        if let Some(known) = state.known.get_mut(directory) {
            known.until = None;
            state.shrunk.insert(directory.to_owned(), deletion);
        }
    }

    /// The workspace in `from` is in `to` now: what was known of either is known no more.
    pub(super) fn moved(&self, from: &Path, to: &Path) {
        let mut state = self.state.lock();
        state.moves += 1;
        state.remove(from);
        state.remove(to);
        state.uncounted.push(to.to_owned());
        drop(state);
        self.start();
    }
}

#[cfg(test)]
mod tests;
