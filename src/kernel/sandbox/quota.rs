//! How much an agent's workspace may hold, and how much it does.

use std::collections::HashMap;
use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::config::Workspaces as Limits;
use crate::kernel::settings::Settings;
use crate::kernel::{openat2, removal};

/// Bytes of a block of which the system counts how many a file has.
const BLOCK_BYTES: u64 = 512;
/// Bytes that an entry counts at least: the system has to remember an empty file, too.
const ENTRY_BYTES_MIN: u64 = 4 << 10;
/// How long a measure holds at least. What this process writes is added to it, what commands write is not known.
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
    bytes: u64,
    until: Instant,
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
        let known = known.map(|known| Known { bytes: known.bytes.saturating_add(written), ..known });
        let found = match known.filter(|known| !is_too_much(known.bytes)) {
            Some(known) => known,
            None => {
                let began = Instant::now();
                // One that cannot be measured holds what nobody knows.
                let bytes = measure(root).unwrap_or(u64::MAX);
                Known { bytes, until: Instant::now() + HOLDS.max(began.elapsed() * HOLDS_TIMES) }
            }
        };
        if is_too_much(found.bytes) {
            return Err(max);
        }
        let bytes = found.bytes.saturating_add(coming).saturating_sub(going);
        let mut known = self.known.lock();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(directory.to_owned(), Known { bytes, ..found });
        Ok(())
    }

    /// What the workspace in `directory` holds is to be measured anew.
    pub(super) fn forget(&self, directory: &Path) {
        self.known.lock().remove(directory);
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
pub(super) fn measure(root: BorrowedFd<'_>) -> Result<u64, Errno> {
    let mut tried = 0;
    loop {
        match measure_once(root) {
            Err(Errno::AGAIN) if tried < TRIES_MAX => tried += 1,
            measured => return measured,
        }
    }
}

/// As [`measure`], of the directory at a path.
pub(super) fn measure_at(path: &Path) -> Result<u64, Errno> {
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
    let mut bytes = 0;
    let mut here = openat2::directory(root, ".")?;
    let mut levels = vec![level(&here, &mut bytes)?];
    while let Some(Level { pending, .. }) = levels.last_mut() {
        if let Some(name) = pending.pop() {
            match removal::open_closed(here.as_fd(), &*name) {
                Ok(inner) => {
                    levels.push(level(&inner, &mut bytes)?);
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
    Ok(bytes)
}

fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// Adds what is in a directory, but not what is in its directories.
fn level(here: &OwnedFd, bytes: &mut u64) -> Result<Level, Errno> {
    let mut pending = Vec::new();
    for name in openat2::names(here.as_fd())? {
        match rustix::fs::statat(here, &*name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                *bytes = bytes.saturating_add(bytes_of(&stat));
                if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                    pending.push(name);
                }
            }
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Level { id: id(&rustix::fs::fstat(here)?), pending })
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
