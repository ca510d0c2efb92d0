//! What can be done in one workspace: read, write, append, delete, look. Listings are in [`super::listing`].
//!
//! All calls block on the disk. Whatever the path is made of, nothing outside of the workspace is read or changed; see
//! [`crate::kernel::openat2`] for how.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentsvc_components::kernel::limit::{FILE_BYTES_MAX, FILE_SCAN_MAX};
use chrono::{DateTime, Utc};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::command::TEMPORARY;
use super::error::Error;
use super::measure::{ENTRY_BYTES_MIN, bytes_of};
use super::path::WorkspacePath;
use super::quota::{Change, CommandWorkspace, Quota};
use super::workspace::Shared;
use crate::kernel::free_space::{self, Sparing};
use crate::kernel::openat2::{no_links, walk};
use crate::kernel::removal::{Stop, remove_at};

/// Permissions of new files: for the owner only.
const FILE_MODE: Mode = Mode::from_raw_mode(0o600);
/// Bytes copied at once.
const COPY_BYTES: usize = 64 << 10;

/// The private directory of one agent, open.
#[derive(Debug)]
pub struct Workspace {
    pub(super) root: OwnedFd,
    path: PathBuf,
    /// All of them.
    pub(super) shared: Arc<Shared>,
}

/// What happens when a file of the name is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// It is replaced.
    Overwrite,
    /// [`Error::Exists`].
    Create,
}

/// What is under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An ordinary file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A fifo, a socket or a device; never opened.
    Special,
}

/// One name of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path from the workspace on. In listings, what is not UTF-8 is replaced by U+FFFD.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Bytes of a file; 0 for everything else.
    pub size: u64,
    /// When its content changed last.
    pub modified: DateTime<Utc>,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The bytes; fewer than asked for when the file ends.
    pub bytes: Vec<u8>,
    /// Bytes of the whole file.
    pub size: u64,
}

impl Workspace {
    pub(super) fn new(root: OwnedFd, path: PathBuf, shared: &Arc<Shared>) -> Self {
        Self { root, path, shared: Arc::clone(shared) }
    }

    /// Opens `path` for reading.
    pub(super) fn resolve(&self, path: &WorkspacePath, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.shared.resolver.open(self.root.as_fd(), path.as_str(), flags)
    }

    /// Readies it for a command, with a directory for its temporary files.
    ///
    /// # Errors
    /// [`Error::Quota`], [`Error::ShareQuota`] or [`Error::TotalQuota`] when there is too much already; those of
    /// [`make_directory`](Self::make_directory).
    pub fn for_command(&self) -> Result<CommandWorkspace, Error> {
        let begun = CommandWorkspace::begin(&self.path, self.root.as_fd(), &self.shared.quotas);
        let begun = begun.map_err(|quota| exceeded("", quota))?;
        self.make_directory(&WorkspacePath::parse(TEMPORARY)?)?;
        Ok(begun)
    }

    /// Does `path` go through a symbolic link? For those whose paths are judged by their text.
    pub fn goes_through_link(&self, path: &str) -> bool {
        let Ok(path) = WorkspacePath::parse(path) else { return false };
        let opened = no_links(self.root.as_fd(), path.as_str(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY);
        matches!(opened, Err(Errno::LOOP | Errno::NOTDIR))
    }

    fn admit(&self, path: &WorkspacePath, change: Change) -> Result<(), Error> {
        let admitted = self.shared.quotas.admit(&self.path, self.root.as_fd(), change);
        admitted.map_err(|quota| exceeded(path.as_str(), quota))
    }

    /// Where it is. For commands that begin there; files are opened by the methods only.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// [`Error`]: a wrong path, nothing there, a directory, a link that leads out, a special file, a hard link.
    pub fn open_file(&self, path: &str) -> Result<(File, Entry), Error> {
        let path = WorkspacePath::parse(path)?;
        // Not blocking, so that a fifo does not hold the caller; what is opened is looked at before it is used.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self.resolve(&path, flags);
        let file = File::from(opened.map_err(|error| Error::of("open", path.as_str(), error))?);
        let entry = ordinary(&file, &path)?;
        Ok((file, entry))
    }

    /// Reads at most `bytes_max` bytes of a file, from the byte `from` on.
    pub fn read(&self, path: &str, from: u64, bytes_max: usize) -> Result<Piece, Error> {
        let (mut file, entry) = self.open_file(path)?;
        let mut bytes = Vec::new();
        let read = |file: &mut File, bytes: &mut Vec<u8>| {
            file.seek(SeekFrom::Start(from))?;
            file.take(bytes_max as u64).read_to_end(bytes)
        };
        read(&mut file, &mut bytes).map_err(|error| Error::of("read", path, error))?;
        Ok(Piece { bytes, size: entry.size })
    }

    /// Reads a whole file of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file), and [`Error::TooLarge`].
    pub fn read_whole(&self, path: &str, bytes_max: u64) -> Result<Vec<u8>, Error> {
        let wanted = usize::try_from(bytes_max.saturating_add(1)).unwrap_or(usize::MAX);
        let Piece { bytes, size } = self.read(path, 0, wanted)?;
        if bytes.len() as u64 > bytes_max {
            return Err(Error::TooLarge { path: path.to_owned(), bytes: size.max(bytes_max + 1), max: bytes_max });
        }
        Ok(bytes)
    }

    /// Writes a whole file: readers see the old one or the new one, never a part. Missing directories are made. True
    /// when the file is new.
    ///
    /// # Errors
    /// [`Error`]; with [`Write::Create`] also [`Error::Exists`].
    pub fn write(&self, path: &str, bytes: &[u8], write: Write) -> Result<bool, Error> {
        self.write_from(path, &mut &*bytes, FILE_BYTES_MAX, write)
    }

    /// As [`write`](Self::write), from a reader of at most `bytes_max` bytes (and never more than a file may have).
    ///
    /// # Errors
    /// As [`write`](Self::write), [`Error::TooLarge`], and [`Error::Io`] when the reader fails.
    pub fn write_from(&self, path: &str, from: &mut dyn Read, bytes_max: u64, write: Write) -> Result<bool, Error> {
        let written = self.write_new(&WorkspacePath::parse(path)?, from, bytes_max, write);
        if written.is_err() {
            // What was written until then may have been measured.
            self.shared.quotas.forget(&self.path);
        }
        written
    }

    fn write_new(
        &self,
        path: &WorkspacePath,
        from: &mut dyn Read,
        bytes_max: u64,
        write: Write,
    ) -> Result<bool, Error> {
        self.has_room(path, 0)?;
        let (parent, name) = self.parent(path, true)?;
        let before = self.replaceable(&parent, path, name, write)?;
        let mode = before.map_or(FILE_MODE, |stat| Mode::from_raw_mode(stat.st_mode & 0o777));
        let (fresh, mut file) =
            Fresh::create(parent.as_fd()).map_err(|error| Error::of("create", path.as_str(), error))?;
        let mut sparing =
            Sparing::new(&mut file, &self.path).map_err(|error| Error::of("write", path.as_str(), error))?;
        let written = copy(from, &mut sparing, bytes_max.min(FILE_BYTES_MAX), path)?;
        let (written, going) = (written.max(ENTRY_BYTES_MIN), before.as_ref().map_or(0, bytes_of));
        self.admit(path, Change { written, going, ..Change::default() })?;
        let finish = || -> io::Result<()> {
            rustix::fs::fchmod(&file, mode)?;
            file.sync_data()?;
            fresh.publish(name, write)
        };
        finish().map_err(|error| Error::of("write", path.as_str(), error))?;
        Ok(before.is_none())
    }

    /// Adds to the end of a file, which is made when there is none; gives its new size. Not atomic: a crash may leave
    /// a part of the addition.
    ///
    /// # Errors
    /// [`Error`]; nothing was written when it is [`Error::TooLarge`].
    pub fn append(&self, path: &str, bytes: &[u8]) -> Result<u64, Error> {
        let path = WorkspacePath::parse(path)?;
        self.has_room(&path, bytes.len() as u64)?;
        self.admit(&path, Change { coming: bytes.len() as u64, ..Change::default() })?;
        let (parent, name) = self.parent(&path, true)?;
        let flags = OFlags::WRONLY
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let refused = |error: io::Error| Error::of("write", path.as_str(), error);
        let opened = rustix::fs::openat(&parent, name, flags, FILE_MODE).map_err(|error| refused(error.into()))?;
        let mut file = File::from(opened);
        let before = ordinary(&file, &path)?.size;
        let size = before.saturating_add(bytes.len() as u64);
        if size > FILE_BYTES_MAX {
            return Err(Error::TooLarge { path: path.to_string(), bytes: size, max: FILE_BYTES_MAX });
        }
        file.write_all(bytes).and_then(|()| file.sync_data()).map_err(refused)?;
        if before == 0 {
            // Its name may be as new as its content.
            rustix::fs::fsync(&parent).map_err(|error| refused(error.into()))?;
        }
        Ok(size)
    }

    /// Makes a directory and those above it, if they are missing.
    ///
    /// # Errors
    /// [`Error`]: something else has the name, or a symbolic link is on the way.
    pub fn make_directory(&self, path: &WorkspacePath) -> Result<(), Error> {
        let made = walk(self.root.as_fd(), path.as_str(), true);
        made.map(drop).map_err(|error| Error::of("make", path.as_str(), error))
    }

    /// What is under a path. A symbolic link at its end is told as such.
    pub fn metadata(&self, path: &str) -> Result<Entry, Error> {
        let path = WorkspacePath::parse(path)?;
        let opened = self.resolve(&path, OFlags::PATH | OFlags::NOFOLLOW);
        let stat = opened.and_then(|opened| rustix::fs::fstat(&opened));
        Ok(entry(path.to_string(), &stat.map_err(|error| Error::of("look at", path.as_str(), error))?))
    }

    /// Deletes a file, a symbolic link (itself, not what it leads to) or a directory; one that is not empty only when
    /// `recursive`. Gives the number of entries that are gone.
    ///
    /// # Errors
    /// [`Error`]; when a recursive deletion fails on the way, what was deleted until then is gone.
    pub fn remove(&self, path: &str, recursive: bool) -> Result<usize, Error> {
        let removed = self.remove_entry(&WorkspacePath::parse(path)?, recursive);
        self.shared.quotas.forget(&self.path);
        removed
    }

    fn remove_entry(&self, path: &WorkspacePath, recursive: bool) -> Result<usize, Error> {
        let (parent, name) = self.parent(path, false)?;
        let refused = |error: Errno| Error::of("delete", path.as_str(), error);
        let stat = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(refused)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            rustix::fs::unlinkat(&parent, name, AtFlags::empty()).map_err(refused)?;
            return rustix::fs::fsync(&parent).map(|()| 1).map_err(refused);
        }
        let mut left = FILE_SCAN_MAX;
        if recursive {
            remove_at(parent.as_fd(), name, &mut left).map_err(|stop| match stop {
                Stop::Bound => Error::TooMany { path: path.to_string(), max: FILE_SCAN_MAX },
                Stop::System(error) => refused(error),
            })?;
        } else {
            rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR).map_err(refused)?;
        }
        rustix::fs::fsync(&parent).map_err(refused)?;
        Ok(FILE_SCAN_MAX - left + 1)
    }

    /// Has the disk room for so many bytes more, beside what is left to the store?
    fn has_room(&self, path: &WorkspacePath, bytes: u64) -> Result<(), Error> {
        free_space::check(&self.path, bytes).map_err(|error| Error::of("write", path.as_str(), error))
    }

    /// The directory of a path, opened without following any symbolic link, and the name in it.
    fn parent<'a>(&self, path: &'a WorkspacePath, make: bool) -> Result<(OwnedFd, &'a str), Error> {
        let whole = || Error::Path { path: String::new(), reason: "is the workspace itself; use a path inside it" };
        let (parents, name) = path.split().ok_or_else(whole)?;
        let parent = walk(self.root.as_fd(), parents, make).map_err(|error| Error::of("open", path.as_str(), error))?;
        Ok((parent, name))
    }

    /// The file that would be replaced; `None` when there is none.
    fn replaceable(
        &self,
        parent: &OwnedFd,
        path: &WorkspacePath,
        name: &str,
        write: Write,
    ) -> Result<Option<Stat>, Error> {
        let stat = match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(Error::of("look at", path.as_str(), error)),
        };
        match kind(&stat) {
            Kind::Directory => Err(Error::IsDirectory(path.to_string())),
            Kind::Link => Err(Error::Link(path.to_string())),
            Kind::Special => Err(Error::Special(path.to_string())),
            Kind::File if write == Write::Create => Err(Error::Exists(path.to_string())),
            Kind::File => Ok(Some(stat)),
        }
    }
}

/// A file that is written beside its place. Dropped before it is published: removed.
struct Fresh<'a> {
    parent: BorrowedFd<'a>,
    name: String,
    published: std::cell::Cell<bool>,
}

impl<'a> Fresh<'a> {
    fn create(parent: BorrowedFd<'a>) -> io::Result<(Self, File)> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = format!(".writing-{:016x}", u64::from_ne_bytes(random));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(parent, name.as_str(), flags, FILE_MODE)?);
        Ok((Self { parent, name, published: false.into() }, file))
    }

    /// Gives it its name, durably. A name is replaced, never followed.
    fn publish(&self, name: &str, write: Write) -> io::Result<()> {
        let flags = if write == Write::Create { RenameFlags::NOREPLACE } else { RenameFlags::empty() };
        let fresh = self.name.as_str();
        match rustix::fs::renameat_with(self.parent, fresh, self.parent, name, flags) {
            // A file system that cannot refuse to replace: a hard link can.
            Err(Errno::INVAL | Errno::NOSYS) if write == Write::Create => {
                rustix::fs::linkat(self.parent, fresh, self.parent, name, AtFlags::empty())?;
            }
            result => {
                result?;
                self.published.set(true);
            }
        }
        Ok(rustix::fs::fsync(self.parent)?)
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        if !self.published.get() {
            // What cannot be removed is left under a name that says what it is.
            let _ = rustix::fs::unlinkat(self.parent, self.name.as_str(), AtFlags::empty());
        }
    }
}

/// What a change of `path` was refused for.
fn exceeded(path: &str, quota: Quota) -> Error {
    let path = path.to_owned();
    match quota {
        Quota::Workspace(max) => Error::Quota { path, max },
        Quota::Share(max) => Error::ShareQuota { path, max },
        Quota::Total(max) => Error::TotalQuota { path, max },
    }
}

fn copy(from: &mut dyn Read, to: &mut impl io::Write, bytes_max: u64, path: &WorkspacePath) -> Result<u64, Error> {
    let refused = |error| Error::of("write", path.as_str(), error);
    let (mut buffer, mut copied) = (vec![0; COPY_BYTES], 0);
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(copied),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(refused(error)),
        };
        copied += count as u64;
        if copied > bytes_max {
            return Err(Error::TooLarge { path: path.to_string(), bytes: copied, max: bytes_max });
        }
        to.write_all(&buffer[..count]).map_err(refused)?;
    }
}

/// The entry of an open file, if it is an ordinary one with one name.
fn ordinary(file: &File, path: &WorkspacePath) -> Result<Entry, Error> {
    let stat = rustix::fs::fstat(file).map_err(|error| Error::of("look at", path.as_str(), error))?;
    match kind(&stat) {
        Kind::File if stat.st_nlink > 1 => Err(Error::HardLink(path.to_string())),
        Kind::File => Ok(entry(path.to_string(), &stat)),
        Kind::Directory => Err(Error::IsDirectory(path.to_string())),
        Kind::Link => Err(Error::Link(path.to_string())),
        Kind::Special => Err(Error::Special(path.to_string())),
    }
}

fn kind(stat: &rustix::fs::Stat) -> Kind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Link,
        _ => Kind::Special,
    }
}

/// The entry that `stat` tells of.
pub(super) fn entry(path: String, stat: &rustix::fs::Stat) -> Entry {
    let kind = kind(stat);
    let size = if kind == Kind::File { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 };
    let modified = DateTime::from_timestamp(stat.st_mtime, u32::try_from(stat.st_mtime_nsec).unwrap_or(0));
    Entry { path, kind, size, modified: modified.unwrap_or_default() }
}
