//! How much a workspace holds: what its files take of the disk, found by a look at each of them.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::kernel::{openat2, removal};

/// Bytes of a block of which the system counts how many a file has.
const BLOCK_BYTES: u64 = 512;
/// Bytes that an entry counts at least: the system has to remember an empty file, too.
pub(super) const ENTRY_BYTES_MIN: u64 = 4 << 10;
/// Names of directories that wait to be looked into, at most: those of files are not kept.
const PENDING_MAX: usize = 100_000;
/// How often a workspace that changes meanwhile is measured anew.
const TRIES_MAX: u32 = 8;

/// Bytes that an entry counts.
pub(super) fn bytes_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or_default().saturating_mul(BLOCK_BYTES).max(ENTRY_BYTES_MIN)
}

/// Bytes that everything in a directory takes, however deep it is.
///
/// # Errors
/// The system refused, the directories are moved about without end, or more than [`PENDING_MAX`] of them wait to be looked into
/// (`EOVERFLOW`).
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
///
/// # Errors
/// As [`measure`].
pub(crate) fn measure_at(path: &Path) -> Result<u64, Errno> {
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
            sum.pending -= 1;
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
    /// Directories that wait to be looked into.
    pending: usize,
    /// Files with several names, of which one counts what the file takes and the others a name.
    linked: HashSet<(u64, u64)>,
}

impl Sum {
    /// Adds what is in a directory, but not what is in its directories.
    fn level(&mut self, here: &OwnedFd) -> Result<Level, Errno> {
        let mut pending = Vec::new();
        for name in openat2::each_name(here.as_fd())? {
            let name = name?;
            match rustix::fs::statat(here, &*name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => {
                    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
                    let is_counted = !is_directory && stat.st_nlink > 1 && !self.linked.insert(id(&stat));
                    let bytes = if is_counted { ENTRY_BYTES_MIN } else { bytes_of(&stat) };
                    self.bytes = self.bytes.saturating_add(bytes);
                    if is_directory {
                        pending.push(name);
                        self.pending += 1;
                    }
                    if self.pending > PENDING_MAX {
                        return Err(Errno::OVERFLOW);
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
    fn so_many_directories_wait_to_be_looked_into() {
        let dir = tempfile::tempdir().unwrap();
        let root = File::open(dir.path()).unwrap();
        let mut sum = Sum { pending: PENDING_MAX - 1, ..Sum::default() };
        for n in 0..100 {
            File::create(dir.path().join(n.to_string())).unwrap();
        }
        fs::create_dir(dir.path().join("one")).unwrap();
        let here = || openat2::directory(root.as_fd(), ".").unwrap();
        assert_eq!(sum.level(&here()).unwrap().pending.len(), 1, "names of files do not wait");
        assert_eq!(sum.level(&here()).err(), Some(Errno::OVERFLOW));
        assert!(measure(root.as_fd()).is_ok());
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
