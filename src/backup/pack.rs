//! Files into an archive and out of it. Holes are no data: neither copies have them written, nor what is restored.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use agentsvc_components::kernel::limit::{BACKUP_ENTRIES_MAX, BACKUP_HOLES_BYTES_MAX};
use rustix::io::Errno;

use super::error::{Error, found_in, io};
use super::files::{Found, Names, is_agents, is_agents_doing, workspace_of};
use super::write::{ArchiveWriter, Kind, RESERVED_ENTRIES, counted};
use crate::kernel::free_space;
use crate::kernel::home::private_file;

/// Bytes of a file that is read at once; a longer one goes through a copy, so that its size is known when it begins.
const AT_ONCE_BYTES_MAX: u64 = 1 << 20;
/// Bytes that become a hole when all of them are zero.
const BLOCK_BYTES: u64 = 64 << 10;
/// Bytes of a block of which the system counts how many a file has.
const STAT_BLOCK_BYTES: u64 = 512;

/// Puts files into an archive.
pub(super) struct Packer<'a> {
    archive: &'a mut ArchiveWriter,
    /// Where a long one is copied to first.
    spool: PathBuf,
    /// The names of files that have several.
    names: Names,
    /// Bytes of holes that were packed of each workspace.
    holes: BTreeMap<String, u64>,
    /// As how many entries the files of one workspace may count.
    share: usize,
    /// What was packed of each workspace.
    packed: BTreeMap<String, Packed>,
}

/// What was packed of a workspace.
#[derive(Default)]
struct Packed {
    /// As how many entries it counts.
    entries: usize,
    /// Files for which there was no room.
    left_out: u64,
}

impl<'a> Packer<'a> {
    pub(super) fn new(archive: &'a mut ArchiveWriter, spool: PathBuf, names: Names) -> Self {
        Self::bounded(archive, spool, names, BACKUP_ENTRIES_MAX - RESERVED_ENTRIES)
    }

    /// As [`new`](Self::new), for a backup of at most so many entries.
    pub(super) fn bounded(archive: &'a mut ArchiveWriter, spool: PathBuf, names: Names, entries_max: usize) -> Self {
        let share = names.share(entries_max);
        Self { archive, spool, names, holes: BTreeMap::new(), share, packed: BTreeMap::new() }
    }

    /// What was left out for want of room, in words: one line for each workspace.
    pub(super) fn left_out(&self) -> impl Iterator<Item = String> {
        let lost = self.packed.iter().filter(|(_, packed)| packed.left_out > 0);
        lost.map(|(workspace, Packed { left_out, .. })| {
            tracing::warn!(workspace, left_out, "a workspace is not complete in the backup: it has too many files");
            format!("\"workspaces/{workspace}\": {left_out} files were skipped: the backup has no room for so many")
        })
    }

    /// Is there room for a file? One that is nobody's must have it.
    fn takes(&mut self, entry: &str, size: u64) -> bool {
        let Some(workspace) = workspace_of(entry) else { return true };
        if !self.packed.contains_key(workspace) {
            self.packed.insert(workspace.to_owned(), Packed::default());
        }
        let is_free = self.archive.takes(entry, size);
        let Some(packed) = self.packed.get_mut(workspace) else { return false };
        let entries = packed.entries + counted(entry);
        let takes = is_free && entries <= self.share;
        if takes {
            packed.entries = entries
        } else {
            packed.left_out += 1
        }
        takes
    }

    /// Adds a file. Gives why it is left out, if it is.
    pub(super) fn pack(&mut self, found: &Found<'_>) -> Result<Option<String>, Error> {
        let Found { entry, path, .. } = *found;
        let mut file = match found.open() {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Some("it was deleted during the backup".to_owned())),
            Err(error) if is_agents_doing(entry, error) => return Ok(Some(format!("it cannot be read: {error}"))),
            Err(error) => return Err(io("read", path)(error.into())),
        };
        let metadata = file.metadata().map_err(io("look at", path))?;
        if !metadata.is_file() {
            return Ok(Some("it is no longer a regular file".to_owned()));
        }
        let inode = (metadata.dev(), metadata.ino());
        if is_agents(entry) && metadata.nlink() > 1 && !self.names.are_all_in(entry, inode, metadata.nlink()) {
            return Ok(Some("it has hard links that may be outside of the workspace".to_owned()));
        }
        let size = metadata.len();
        if !self.takes(entry, size) {
            return Ok(None);
        }
        let kind = if metadata.permissions().mode() & 0o100 == 0 { Kind::File } else { Kind::Program };
        if size <= AT_ONCE_BYTES_MAX {
            let mut bytes = Vec::with_capacity(size as usize);
            (&mut file).take(2 * AT_ONCE_BYTES_MAX).read_to_end(&mut bytes).map_err(io("read", path))?;
            // Longer by now: what it was when it was looked at is as good.
            bytes.truncate(AT_ONCE_BYTES_MAX as usize);
            let fill = |out: &mut dyn Write| out.write_all(&bytes).map_err(io("write", path));
            self.archive.entry(entry, bytes.len() as u64, kind, fill)?;
            return Ok(None);
        }
        let spool = &self.spool;
        let mut copy = private_file()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(spool)
            .map_err(io("create", spool))?;
        // Nobody else needs the name.
        fs::remove_file(spool).map_err(io("remove", spool))?;
        let dir = spool.parent().unwrap_or(Path::new("."));
        free_space::check(dir, size.min(metadata.blocks().saturating_mul(STAT_BLOCK_BYTES)))
            .map_err(io("write", dir))?;
        // No agent takes another one's files out of a backup.
        let mut packed = workspace_of(entry).map(|workspace| self.holes.entry(workspace.to_owned()).or_default());
        let left = packed.as_ref().map_or(u64::MAX, |packed| BACKUP_HOLES_BYTES_MAX - **packed);
        let Some(holes) = copy_data(&file, &copy, size, left).map_err(io("read", path))? else {
            return Ok(Some(format!("the holes of the workspace's files exceed {BACKUP_HOLES_BYTES_MAX} bytes")));
        };
        if let Some(packed) = &mut packed {
            **packed += holes;
        }
        copy.rewind().map_err(io("read", spool))?;
        self.archive.entry(entry, size, kind, |mut out| {
            io::copy(&mut copy, &mut out).map(drop).map_err(|error| found_in("write", spool, error))
        })?;
        Ok(None)
    }
}

/// Copies `size` bytes of a file, of which what has gone meanwhile is zero. What are holes become holes; gives their bytes,
/// `None` when there are more of them than may be.
fn copy_data(mut from: &File, mut to: &File, size: u64, holes_max: u64) -> io::Result<Option<u64>> {
    let (mut at, mut holes) = (0, 0);
    while at < size {
        let data = match rustix::fs::seek(from, rustix::fs::SeekFrom::Data(at)) {
            Ok(data) => data.min(size),
            Err(Errno::NXIO) => size,
            Err(error) => return Err(error.into()),
        };
        holes += data - at;
        if holes > holes_max {
            return Ok(None);
        }
        let end = match rustix::fs::seek(from, rustix::fs::SeekFrom::Hole(data)) {
            Ok(end) => end.clamp((data + 1).min(size), size),
            Err(Errno::NXIO) => size,
            Err(error) => return Err(error.into()),
        };
        from.seek(SeekFrom::Start(data))?;
        to.seek(SeekFrom::Start(data))?;
        io::copy(&mut from.take(end - data), &mut to)?;
        at = end;
    }
    to.set_len(size)?;
    Ok(Some(holes))
}

/// Copies a stream into a file that only its owner may read. Gives its bytes.
pub(super) fn unpack_file(input: &mut dyn Read, path: &Path, runs: bool) -> Result<u64, Error> {
    if let Some(dir) = path.parent() {
        crate::kernel::home::create_private_dir(dir).map_err(|error| io("create", dir)(io::Error::other(error)))?;
    }
    let mode = if runs { 0o700 } else { 0o600 };
    let mut file = private_file().mode(mode).write(true).create_new(true).open(path).map_err(io("create", path))?;
    copy_with_holes(input, &mut file).map_err(|error| found_in("write", path, error))
}

/// Copies a stream into an empty file, whose blocks of zeros are not written. Gives its bytes.
fn copy_with_holes(mut input: &mut dyn Read, file: &mut File) -> io::Result<u64> {
    let (mut block, mut size) = (Vec::new(), 0);
    loop {
        block.clear();
        (&mut input).take(BLOCK_BYTES).read_to_end(&mut block)?;
        if block.iter().any(|byte| *byte != 0) {
            file.seek(SeekFrom::Start(size))?;
            file.write_all(&block)?;
        }
        size += block.len() as u64;
        if (block.len() as u64) < BLOCK_BYTES {
            break;
        }
    }
    file.set_len(size)?;
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn stored(file: &File) -> u64 {
        file.metadata().unwrap().blocks() * STAT_BLOCK_BYTES
    }

    #[test]
    fn holes_stay_holes() {
        let dir = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let path = dir.path().join(name);
            File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap()
        };
        let (mut from, mut copy) = (open("from"), open("copy"));
        for at in [0, 300 * MIB + 7, 800 * MIB] {
            from.seek(SeekFrom::Start(at)).unwrap();
            from.write_all(b"data").unwrap();
        }
        from.set_len(900 * MIB).unwrap();
        let holes = copy_data(&from, &copy, 900 * MIB, BACKUP_HOLES_BYTES_MAX).unwrap().unwrap();
        assert!(holes > 899 * MIB && stored(&copy) < MIB, "{holes} {}", stored(&copy));
        copy.rewind().unwrap();
        let path = dir.path().join("out/restored");
        assert_eq!(unpack_file(&mut copy, &path, false).unwrap(), 900 * MIB);
        let mut restored = File::open(&path).unwrap();
        assert!(restored.metadata().unwrap().len() == 900 * MIB && stored(&restored) < MIB);
        for (at, text) in [(0, "data"), (300 * MIB + 7, "data"), (800 * MIB, "data"), (500 * MIB, "\0\0\0\0")] {
            let mut found = [9; 4];
            restored.seek(SeekFrom::Start(at)).unwrap();
            restored.read_exact(&mut found).unwrap();
            assert_eq!(found, text.as_bytes(), "at {at}");
        }
    }

    #[test]
    fn each_workspace_has_holes_of_its_own() {
        assert_eq!(workspace_of("workspaces/a/b/c"), Some("a"));
        assert_eq!(workspace_of("workspaces/b/c"), Some("b"));
        assert_eq!((workspace_of("uploads/a/b"), workspace_of("data/workspaces/a")), (None, None));
    }

    #[test]
    fn no_more_holes_are_read_than_may_be() {
        let dir = tempfile::tempdir().unwrap();
        let open =
            |name: &str| File::options().read(true).write(true).create_new(true).open(dir.path().join(name)).unwrap();
        let (from, copy) = (open("from"), open("copy"));
        from.set_len(1 << 40).unwrap();
        assert_eq!(copy_data(&from, &copy, 1 << 40, BACKUP_HOLES_BYTES_MAX).unwrap(), None);
        // What has gone since it was looked at is a hole.
        assert_eq!(copy_data(&from, &copy, MIB, MIB).unwrap(), Some(MIB));
        assert_eq!(copy.metadata().unwrap().len(), MIB);
    }

    #[test]
    fn what_is_restored_is_as_long_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        for (n, length) in
            [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES].into_iter().enumerate()
        {
            for byte in [0, 7] {
                let path = dir.path().join(format!("{n}-{byte}"));
                let bytes = vec![byte; length as usize];
                assert_eq!(unpack_file(&mut bytes.as_slice(), &path, false).unwrap(), length);
                assert!(fs::read(path).unwrap() == bytes);
            }
        }
    }
}
