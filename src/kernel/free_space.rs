//! Room on the disk. Copies of the world leave some of it to the world itself: a store that cannot write ends the daemon.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use rustix::fs::StatVfs;
use rustix::io::Errno;

/// Bytes that stay free.
pub(crate) const SPARE_BYTES: u64 = 64 << 20;
/// Bytes that are written between two looks.
const LOOK_EVERY: u64 = 16 << 20;

/// Files that the disk must have room for; with fewer there is no room at all. Disks without a limit say 0 of 0.
const FILES_SPARE: u64 = 1_024;
/// Files that stay free beside those.
const FILES_CHECKED: u64 = 4 * FILES_SPARE;

/// Bytes that are free where `path` is; none where no files can be made.
///
/// # Errors
/// There is nothing at the path, or the system does not say.
pub(crate) fn free(path: &Path) -> io::Result<u64> {
    Ok(free_beside(path, FILES_SPARE)?)
}

/// Bytes that are free where `path` is, for what is written into files that are there.
///
/// # Errors
/// Those of [`free`].
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    Ok(free_beside(path, 0)?)
}

fn free_beside(path: &Path, files: u64) -> Result<u64, Errno> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(room_of(&stat, files))
}

/// The room that the system tells of. A file system in memory or of another machine may tell of none at all, and has some.
fn room_of(stat: &StatVfs, files: u64) -> u64 {
    match stat {
        StatVfs { f_blocks: 0, .. } => u64::MAX,
        StatVfs { f_files: 1.., f_favail, .. } if *f_favail < files => 0,
        StatVfs { f_bavail, f_frsize, .. } => f_bavail.saturating_mul(*f_frsize),
    }
}

/// Bytes that are free where `path` is for those who leave [`SPARE_BYTES`] of them; none where few files can be made.
///
/// # Errors
/// Those of [`free`].
pub(crate) fn room(path: &Path) -> io::Result<u64> {
    Ok(free_beside(path, FILES_CHECKED)?)
}

/// Is there room for so many bytes more, where `path` is?
///
/// # Errors
/// [`ErrorKind::StorageFull`] when less than [`SPARE_BYTES`] would stay free; those of [`free`].
pub(crate) fn check(path: &Path, bytes: u64) -> io::Result<()> {
    let needed = bytes.saturating_add(SPARE_BYTES);
    if free_beside(path, FILES_CHECKED)? < needed { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
}

/// Writes as long as enough stays free.
pub(crate) struct Sparing<W> {
    out: W,
    path: PathBuf,
    unseen: u64,
}

impl<W: Write> Sparing<W> {
    /// Writes into `out`, which is a file at `path`.
    pub(crate) fn new(out: W, path: &Path) -> io::Result<Self> {
        check(path, 0)?;
        Ok(Self { out, path: path.to_owned(), unseen: 0 })
    }

    /// What was written into.
    pub(crate) fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> Write for Sparing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.unseen >= LOOK_EVERY {
            check(&self.path, 0)?;
            self.unseen = 0;
        }
        let written = self.out.write(bytes)?;
        self.unseen += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_may_lack_bytes_or_files_and_may_tell_of_neither() {
        let mut stat = rustix::fs::statvfs(".").unwrap();
        (stat.f_blocks, stat.f_bavail, stat.f_frsize) = (100, 10, 4_096);
        (stat.f_files, stat.f_favail) = (9_000, 1_000);
        assert_eq!((room_of(&stat, 1_000), room_of(&stat, 1_001)), (40_960, 0));
        (stat.f_files, stat.f_favail) = (0, 0);
        assert_eq!(room_of(&stat, 1_001), 40_960);
        stat.f_bavail = 0;
        assert_eq!(room_of(&stat, 0), 0);
        stat.f_blocks = 0;
        assert_eq!(room_of(&stat, 0), u64::MAX);
    }

    #[test]
    fn what_would_fill_the_disk_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        check(dir.path(), 0).unwrap();
        assert_eq!(check(dir.path(), u64::MAX).unwrap_err().kind(), ErrorKind::StorageFull);
        assert!(free(&dir.path().join("none")).is_err());
        let mut writer = Sparing::new(Vec::new(), dir.path()).unwrap();
        for _ in 0..20 {
            writer.write_all(&[1; 1 << 20]).unwrap();
        }
        // It is looked at again on the way.
        writer.path = dir.path().join("none");
        assert_eq!(writer.unseen, 4 << 20);
        for _ in 0..12 {
            writer.write_all(&[1; 1 << 20]).unwrap();
        }
        writer.write_all(&[1]).unwrap_err();
        assert_eq!(writer.into_inner().len(), 32 << 20);
    }
}
