//! How much an agent's workspace may hold, and how much it does.
//!
//! What this process writes is counted. What a command writes is measured behind its end, beside whatever comes next, and
//! now and then while it runs. So a command that begins needs not wait for a look at every file.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::config::Workspaces as Limits;
use super::workspace::Shared;
use crate::kernel::settings::Settings;
use crate::kernel::{openat2, removal};

/// Bytes of a block of which the system counts how many a file has.
const BLOCK_BYTES: u64 = 512;
/// Bytes that an entry counts at least: the system has to remember an empty file, too.
const ENTRY_BYTES_MIN: u64 = 4 << 10;
/// How long a measure holds at least, for what this process writes; and for a command that begins while what others wrote
/// before it is still to be measured.
const HOLDS: Duration = Duration::from_secs(2);
/// How much longer than it took a measure holds.
const HOLDS_TIMES: u32 = 20;
/// Workspaces of which it is known what they hold.
const KNOWN_MAX: usize = 10_000;
/// How often a workspace that changes meanwhile is measured anew.
const TRIES_MAX: u32 = 8;

/// What workspaces hold, as far as it is known.
#[derive(Default)]
pub(super) struct Quotas {
    settings: Settings,
    known: Mutex<HashMap<PathBuf, Known>>,
}

#[derive(Clone, Copy)]
struct Known {
    /// What was measured, and what this process has written since.
    bytes: u64,
    /// When the measure began.
    measured: Instant,
    /// How long that holds for what this process writes.
    until: Instant,
    /// Commands that run in the workspace.
    running: usize,
    /// How many commands have begun and ended in it, and how many of these had when the measure began.
    changes: u64,
    changes_measured: u64,
    /// It is being measured behind a command.
    is_measuring: bool,
}

impl Known {
    /// Is everything that commands have written in it?
    fn is_whole(&self) -> bool {
        self.running == 0 && self.changes == self.changes_measured
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
        Self { settings, known: Mutex::default() }
    }

    /// Bytes that a workspace may hold.
    pub(super) fn bytes_max(&self) -> u64 {
        self.settings.get::<Limits>().max_bytes
    }

    /// May the workspace in `directory` change like this? `Err` with the quota when it would hold more than that.
    pub(super) fn admit(&self, directory: &Path, root: BorrowedFd<'_>, change: Change) -> Result<(), u64> {
        let (max, Change { written, coming, going }) = (self.bytes_max(), change);
        let is_too_much = |bytes: u64| bytes.saturating_add(coming).saturating_sub(going) > max;
        let known = self.known.lock().get(directory).copied().filter(|known| Instant::now() < known.until);
        let known = known.map(|known| known.bytes.saturating_add(written)).filter(|bytes| !is_too_much(*bytes));
        // One that cannot be measured holds what nobody knows.
        let bytes = known.unwrap_or_else(|| self.measured(directory, || measure(root)).unwrap_or(u64::MAX));
        if is_too_much(bytes) {
            return Err(max);
        }
        if let Some(known) = self.known.lock().get_mut(directory) {
            known.bytes = bytes.saturating_add(coming).saturating_sub(going);
        }
        Ok(())
    }

    /// A command begins in the workspace, unless it holds more than it may: `Err` with the quota then.
    fn begin(&self, directory: &Path, root: BorrowedFd<'_>) -> Result<(), u64> {
        let max = self.bytes_max();
        let holds = |known: &Known| known.bytes <= max && (known.is_whole() || known.measured.elapsed() < HOLDS);
        let is_known = self.known.lock().get(directory).is_some_and(holds);
        if !is_known && self.measured(directory, || measure(root)).unwrap_or(u64::MAX) > max {
            return Err(max);
        }
        if let Some(known) = self.known.lock().get_mut(directory) {
            known.running += 1;
            known.changes += 1;
            known.until = Instant::now();
        }
        Ok(())
    }

    /// Measures, and remembers what it finds.
    fn measured(&self, directory: &Path, measure: impl FnOnce() -> Result<u64, Errno>) -> Result<u64, Errno> {
        let began = Instant::now();
        let before = self.known.lock().get(directory).copied();
        let measured = measure();
        let mut all = self.known.lock();
        if all.len() >= KNOWN_MAX {
            all.clear();
        }
        let empty = Known {
            bytes: 0,
            measured: began,
            until: began,
            running: 0,
            changes: 0,
            changes_measured: 0,
            is_measuring: false,
        };
        let known = all.entry(directory.to_owned()).or_insert(empty);
        known.bytes = measured.unwrap_or(u64::MAX);
        known.measured = began;
        if let Some(before) = before.filter(|before| before.running == 0) {
            known.changes_measured = before.changes;
        }
        let now = Instant::now();
        known.until = if known.is_whole() { now + HOLDS.max(began.elapsed() * HOLDS_TIMES) } else { now };
        measured
    }

    /// A command has ended in the workspace. True when it is to be measured now, and by the caller.
    fn end(&self, directory: &Path) -> bool {
        let mut all = self.known.lock();
        let Some(known) = all.get_mut(directory) else { return false };
        known.running = known.running.saturating_sub(1);
        known.changes += 1;
        !std::mem::replace(&mut known.is_measuring, true)
    }

    /// Measures until all is known that commands have written which have ended.
    fn measure_ended(&self, directory: &Path) {
        loop {
            let measured = self.measured(directory, || measure_at(directory));
            let mut all = self.known.lock();
            let Some(known) = all.get_mut(directory) else { return };
            // The end of one that runs asks for it again.
            if measured.is_err() || known.running > 0 || known.is_whole() {
                known.is_measuring = false;
                return;
            }
        }
    }

    /// What the workspace in `directory` holds is to be measured before the next write.
    pub(super) fn forget(&self, directory: &Path) {
        if let Some(known) = self.known.lock().get_mut(directory) {
            known.until = Instant::now();
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
        let (path, shared) = (self.path.clone(), Arc::clone(&self.shared));
        // Without a thread it stays as it is: the next command or write measures.
        let _ = thread::Builder::new().name("measure".to_owned()).spawn(move || shared.quotas.measure_ended(&path));
    }
}

/// Bytes that an entry counts.
pub(super) fn bytes_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or_default().saturating_mul(BLOCK_BYTES).max(ENTRY_BYTES_MIN)
}

/// Bytes that everything in a directory takes, however deep it is.
///
/// # Errors
/// The system refused, or the directories are moved about without end.
fn measure(root: BorrowedFd<'_>) -> Result<u64, Errno> {
    let mut tried = 0;
    loop {
        match measure_once(root) {
            Err(Errno::AGAIN) if tried < TRIES_MAX => tried += 1,
            measured => return measured,
        }
    }
}

/// As [`measure`], of the directory at a path.
fn measure_at(path: &Path) -> Result<u64, Errno> {
    let root = File::open(path).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    measure(root.as_fd())
}

/// A directory that is gone through: what it is known by, and the directories in it that are still to be looked into.
struct Level {
    id: (u64, u64),
    pending: Vec<CString>,
}

/// Two directories are open at a time: the way back up is `..`, and it must lead to where the way down came from.
fn measure_once(root: BorrowedFd<'_>) -> Result<u64, Errno> {
    let mut sum = Sum::default();
    let mut here = openat2::directory(root, ".")?;
    let mut levels = vec![sum.level(&here)?];
    while let Some(Level { pending, .. }) = levels.last_mut() {
        if let Some(name) = pending.pop() {
            match removal::open_closed(here.as_fd(), &*name) {
                Ok(inner) => {
                    levels.push(sum.level(&inner)?);
                    here = inner;
                }
                // Something else by now.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(error),
            }
            continue;
        }
        levels.pop();
        if let Some(above) = levels.last() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            here = rustix::fs::openat(&here, "..", flags, Mode::empty())?;
            if id(&rustix::fs::fstat(&here)?) != above.id {
                return Err(Errno::AGAIN);
            }
        }
    }
    Ok(sum.bytes)
}

fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// What was found so far.
#[derive(Default)]
struct Sum {
    bytes: u64,
    /// Files with several names, of which one counts what the file takes and the others a name.
    linked: HashSet<(u64, u64)>,
}

impl Sum {
    /// Adds what is in a directory, but not what is in its directories.
    fn level(&mut self, here: &OwnedFd) -> Result<Level, Errno> {
        let mut pending = Vec::new();
        for name in openat2::names(here.as_fd())? {
            match rustix::fs::statat(here, &*name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => {
                    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
                    let is_counted = !is_directory && stat.st_nlink > 1 && !self.linked.insert(id(&stat));
                    let bytes = if is_counted { ENTRY_BYTES_MIN } else { bytes_of(&stat) };
                    self.bytes = self.bytes.saturating_add(bytes);
                    if is_directory {
                        pending.push(name);
                    }
                }
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Level { id: id(&rustix::fs::fstat(here)?), pending })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::kernel::testing::{Exchanging, deep};

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_files_take_is_measured_however_deep_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        deep(&root, 20_000);
        let before = measure_at(&root).unwrap();
        fs::write(root.join("d/d/file"), vec![7; 3 << 20]).unwrap();
        fs::write(dir.path().join("outside"), vec![7; 9 << 20]).unwrap();
        symlink(dir.path().join("outside"), root.join("d/link")).unwrap();
        symlink(dir.path(), root.join("d/up")).unwrap();
        File::create(root.join("sparse")).unwrap().set_len(1 << 40).unwrap();
        let added = measure_at(&root).unwrap() - before;
        assert!((3 * MIB..4 * MIB).contains(&added), "{added}");
        removal::remove(&root).unwrap();
    }

    #[test]
    fn empty_files_count_and_closed_directories_hide_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let closed = dir.path().join("closed");
        fs::create_dir(&closed).unwrap();
        for n in 0..100 {
            File::create(closed.join(n.to_string())).unwrap();
        }
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        assert!(measure_at(dir.path()).unwrap() >= 101 * ENTRY_BYTES_MIN);
    }

    #[test]
    fn a_file_with_several_names_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), vec![7; 3 << 20]).unwrap();
        for name in ["second", "third"] {
            fs::hard_link(dir.path().join("file"), dir.path().join(name)).unwrap();
        }
        let bytes = measure_at(dir.path()).unwrap();
        assert!((3 * MIB + 2 * ENTRY_BYTES_MIN..4 * MIB).contains(&bytes), "{bytes}");
    }

    #[test]
    fn nothing_outside_is_measured_while_directories_and_links_are_exchanged() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        fs::create_dir_all(outside.join("inner")).unwrap();
        fs::write(outside.join("file"), "x").unwrap();
        fs::write(outside.join("inner/file"), vec![7; 64 << 20]).unwrap();
        let exchanging = Exchanging::begin(&root, &outside);
        let most = (0..200).filter_map(|_| measure_at(&root).ok()).max().unwrap();
        drop(exchanging);
        assert!(most < 64 * MIB, "{most}");
    }
}
