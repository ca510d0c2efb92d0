//! A skill that is being prepared: files are written into a folder that no one else sees, within bounds, and then take their
//! place at once.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::entry::Entries;
use super::folders::{CONTENT, FolderError, NameLock, Place, Put};
use super::tree::Tree;
use crate::kernel::disk::{self, entries, sync_dir};
use crate::kernel::free_space;
use crate::kernel::home::{create_private_dir, private_file};
use crate::skill::HISTORY;

/// Files of a skill.
pub(crate) const FILES_MAX: usize = 10_000;
/// Bytes of one file.
pub(crate) const FILE_BYTES_MAX: u64 = 128 << 20;
/// Bytes of all files.
pub(crate) const SKILL_BYTES_MAX: u64 = 512 << 20;
/// Bytes between two looks at the free space.
const LOOK_EVERY: u64 = 16 << 20;
/// The modes of files: none may be written by others, or keeps the bits that change who runs it.
const MODES: [u32; 2] = [0o600, 0o700];

/// A file of a skill, as it is on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileSum {
    /// Its path in the folder, with `/` between names.
    pub(crate) path: String,
    /// Its bytes.
    pub(crate) bytes: u64,
    /// Its SHA-256 in hex.
    pub(crate) sha256: String,
}

/// A skill that waits for its place. Dropped, nothing of it stays.
#[derive(Debug)]
pub(crate) struct Staging {
    place: Place,
    taken: Entries,
    files: usize,
    bytes: u64,
    bytes_max: u64,
    unseen: u64,
}

impl Staging {
    pub(super) fn new(place: Place) -> Self {
        Self { place, taken: Entries::default(), files: 0, bytes: 0, bytes_max: SKILL_BYTES_MAX, unseen: 0 }
    }

    /// The folder that takes the place of the skill.
    pub(crate) fn path(&self) -> PathBuf {
        self.place.path.join(CONTENT)
    }

    /// The files one of which makes its folder what is to be installed.
    pub(super) fn manifests(&self) -> &'static [&'static str] {
        self.place.manifests()
    }

    /// Where something may be kept beside the skill until it is in its place, such as an archive.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.place.path.join(name)
    }

    /// Takes at most so many bytes from here on, all files together.
    pub(crate) fn bound(&mut self, bytes_max: u64) {
        self.bytes_max = bytes_max.min(SKILL_BYTES_MAX);
    }

    /// Makes a folder below the present one the skill; the rest stays aside until the staging goes.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn narrow(&mut self, inner: &str) -> Result<(), FolderError> {
        if inner.is_empty() {
            return Ok(());
        }
        let aside = self.beside("aside");
        fs::rename(self.path(), &aside)?;
        fs::rename(aside.join(inner), self.path())?;
        let mut taken = Entries::default();
        Tree::open(&self.path())?.walk(&mut |found| taken.file(found.path).map(drop).map_err(FolderError::Refused))?;
        self.taken = taken;
        Ok(())
    }

    /// Writes a file; gives its bytes. Directories on the way are made.
    ///
    /// # Errors
    /// [`FolderError::Refused`] for a path that leaves the folder, is there already (also in another case), or ends in `.pth`;
    /// [`FolderError::TooLarge`]; [`FolderError::Unreadable`] when the content fails; [`FolderError::Full`]; or the disk failed.
    /// What was written so far is of no use then.
    pub(crate) fn write(&mut self, path: &str, content: &mut dyn Read, runs: bool) -> Result<u64, FolderError> {
        let path = self.taken.file(path).map_err(FolderError::Refused)?;
        self.files += 1;
        if self.files > FILES_MAX {
            return Err(FolderError::TooLarge(format!("the skill has more than {FILES_MAX} files")));
        }
        let target = self.path().join(&path);
        create_private_dir(target.parent().unwrap_or(&target))
            .map_err(|error| FolderError::from(io::Error::other(error)))?;
        let mut file = private_file().write(true).create_new(true).open(&target)?;
        let written = self.copy(&path, content, &mut file)?;
        file.set_permissions(Permissions::from_mode(MODES[usize::from(runs)]))?;
        Ok(written)
    }

    /// Writes a file that is there or not, such as a changed `SKILL.md` or a `skill.toml` that is added.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(crate) fn replace(&mut self, path: &str, content: &[u8]) -> Result<(), FolderError> {
        let checked = super::entry::checked(path).map_err(FolderError::Refused)?;
        let target = self.path().join(&checked);
        if fs::symlink_metadata(&target).is_err() {
            return self.write(path, &mut &*content, false).map(drop);
        }
        free_space::check(&target, content.len() as u64)?;
        if content.len() as u64 > FILE_BYTES_MAX {
            return Err(too_large(&checked));
        }
        Ok(disk::replace(&target, content)?)
    }

    /// Removes a file. False when there is none.
    ///
    /// # Errors
    /// [`FolderError::Refused`] for a path that can be none of a skill, or the disk failed.
    pub(crate) fn remove(&mut self, path: &str) -> Result<bool, FolderError> {
        let path = super::entry::checked(path).map_err(FolderError::Refused)?;
        Ok(disk::there(fs::remove_file(self.path().join(path)))?.is_some())
    }

    /// Removes what a source brought as the history of its skill: it could put files in force that no one has seen. False when
    /// there is none.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn drop_history(&mut self) -> Result<bool, FolderError> {
        let mut dropped = false;
        for path in entries(&self.path())? {
            if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(HISTORY.as_bytes())) {
                match fs::symlink_metadata(&path)?.is_dir() {
                    true => disk::remove_dir(&path)?,
                    false => disk::remove_file(&path)?,
                }
                dropped = true;
            }
        }
        Ok(dropped)
    }

    /// Copies the files of a folder: regular files only, no symbolic link is followed.
    ///
    /// # Errors
    /// [`FolderError::Refused`] for links and special files, and as [`write`](Self::write).
    pub(super) fn copy_tree(&mut self, tree: &Tree) -> Result<(), FolderError> {
        tree.walk(&mut |found| {
            let mut file = found.open()?;
            let runs = file.metadata()?.permissions().mode() & 0o100 != 0;
            self.write(found.path, &mut file, runs).map(drop)
        })
    }

    /// The paths of all files, sorted.
    ///
    /// # Errors
    /// As [`files`](Self::files).
    pub(crate) fn paths(&self) -> Result<Vec<String>, FolderError> {
        let mut paths = Vec::new();
        Tree::open(&self.path())?.walk(&mut |found| {
            paths.push(found.path.to_owned());
            Ok(())
        })?;
        paths.sort_unstable();
        Ok(paths)
    }

    /// All files with their sums, sorted by path.
    ///
    /// # Errors
    /// [`FolderError::Refused`] for links and special files, or the disk failed.
    pub(crate) fn files(&self) -> Result<Vec<FileSum>, FolderError> {
        files(&self.path())
    }

    /// Gives the skill its name. Durable when it returns; until then the old skill of this name is there, whole. What is
    /// replaced is removed.
    ///
    /// # Errors
    /// [`FolderError::Exists`], [`FolderError::Missing`], or the disk failed; nothing was changed then.
    pub(crate) fn put(mut self, lock: &NameLock, put: Put) -> Result<PathBuf, FolderError> {
        make_durable(&self.path())?;
        let path = lock.put(&self.path(), put)?;
        self.place.remove();
        Ok(path)
    }

    fn copy(&mut self, path: &str, content: &mut dyn Read, file: &mut File) -> Result<u64, FolderError> {
        let (mut piece, mut written) = (vec![0; 64 << 10], 0_u64);
        loop {
            let read = match content.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The text is of what unpacks; a failing disk says what it is.
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Err(FolderError::Full),
                Err(error) => return Err(FolderError::Unreadable(format!("{path:?} cannot be read: {error}"))),
                Ok(read) => read,
            };
            if read == 0 {
                return Ok(written);
            }
            (written, self.bytes, self.unseen) =
                (written + read as u64, self.bytes + read as u64, self.unseen + read as u64);
            if written > FILE_BYTES_MAX {
                return Err(too_large(path));
            }
            if self.bytes > self.bytes_max {
                return Err(FolderError::TooLarge(format!("the files have more than {} bytes", self.bytes_max)));
            }
            if self.unseen >= LOOK_EVERY {
                free_space::check(&self.place.path, 0)?;
                self.unseen = 0;
            }
            file.write_all(&piece[..read])?;
        }
    }
}

fn too_large(path: &str) -> FolderError {
    FolderError::TooLarge(format!("{path:?} has more than {FILE_BYTES_MAX} bytes"))
}

/// All files of a folder, sorted by path.
///
/// # Errors
/// [`FolderError::Refused`] for links and special files, [`FolderError::TooLarge`], or the disk failed.
pub(crate) fn files(folder: &Path) -> Result<Vec<FileSum>, FolderError> {
    let mut files = Vec::new();
    Tree::open(folder)?.walk(&mut |found| {
        let mut digest = Sha256::new();
        let bytes = io::copy(&mut found.open()?, &mut HashInto(&mut digest))?;
        let sha256 = agentsvc_systems::kernel::record::hex(&digest.finalize());
        files.push(FileSum { path: found.path.to_owned(), bytes, sha256 });
        Ok(())
    })?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// Hashes what is written.
pub(super) struct HashInto<'a>(pub(super) &'a mut Sha256);

impl Write for HashInto<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Syncs every file and directory.
fn make_durable(folder: &Path) -> Result<(), FolderError> {
    let mut dirs = vec![folder.to_owned()];
    Tree::open(folder)?.walk(&mut |found| {
        found.open()?.sync_all()?;
        if let Some(dir) = folder.join(found.path).parent().filter(|dir| dirs.last().is_none_or(|last| last != dir)) {
            dirs.push(dir.to_owned());
        }
        Ok(())
    })?;
    // A directory that has directories only is on the way to those that have files.
    let ways: std::collections::BTreeSet<PathBuf> = dirs
        .iter()
        .flat_map(|dir| dir.ancestors().take_while(|above| above.starts_with(folder)).map(Path::to_owned))
        .collect();
    Ok(ways.iter().try_for_each(|dir| sync_dir(dir))?)
}
