//! A directory that is read and never left: no link leads out of it, no file is read beyond a bound.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use agentsvc_components::kernel::limit;

/// Entries of one directory that are looked at; more are left out.
const ENTRIES_MAX: usize = limit::MIGRATION_ITEMS_MAX;

/// The directory.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    root: PathBuf,
}

impl Tree {
    /// Opens a directory.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let root = fs::canonicalize(path)?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root })
    }

    /// Where it is, links resolved.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The place of `path` below the root with links resolved; an error when it leads out of it.
    fn resolve(&self, path: &Path) -> Result<PathBuf, String> {
        let plain = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let shown = path.display();
        let place = plain.then(|| self.root.join(path)).ok_or_else(|| format!("{shown} is outside the home"))?;
        let place = fs::canonicalize(place).map_err(|error| format!("{shown}: {error}"))?;
        if place.starts_with(&self.root) { Ok(place) } else { Err(format!("{shown} is outside the home")) }
    }

    /// Is `path` a file in here?
    pub(super) fn is_file(&self, path: impl AsRef<Path>) -> bool {
        self.resolve(path.as_ref()).is_ok_and(|place| place.is_file())
    }

    /// Is `path` a directory in here?
    pub(super) fn is_dir(&self, path: impl AsRef<Path>) -> bool {
        self.resolve(path.as_ref()).is_ok_and(|place| place.is_dir())
    }

    /// The names in a directory, sorted; none when it is not there. Hidden ones and those that are no text are left out.
    pub(super) fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = self.resolve(path.as_ref()).and_then(|place| fs::read_dir(place).map_err(|e| e.to_string()))
        else {
            return Vec::new();
        };
        let names = entries.take(ENTRIES_MAX).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort_unstable();
        names
    }

    /// The names of the directories in a directory, sorted.
    pub(super) fn dirs(&self, path: impl AsRef<Path>) -> Vec<String> {
        let path = path.as_ref();
        self.names(path).into_iter().filter(|name| self.is_dir(path.join(name))).collect()
    }

    /// A file of at most `bytes_max` bytes.
    pub(super) fn bytes(&self, path: impl AsRef<Path>, bytes_max: u64) -> Result<Vec<u8>, String> {
        let path = path.as_ref();
        let shown = path.display();
        let (file, size) = self.file(path)?;
        if size > bytes_max {
            return Err(format!("{shown} is {size} bytes long; the limit is {bytes_max}"));
        }
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes).map_err(|error| format!("{shown}: {error}"))?;
        Ok(bytes)
    }

    /// A text file of at most [`limit::MIGRATION_TEXT_BYTES_MAX`]. What is no UTF-8 in it is replaced.
    pub(super) fn text(&self, path: impl AsRef<Path>) -> Result<String, String> {
        let bytes = self.bytes(path, limit::MIGRATION_TEXT_BYTES_MAX)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The last `bytes_max` bytes of a file, and whether something stands before them.
    pub(super) fn tail(&self, path: &Path, bytes_max: u64) -> Result<(Vec<u8>, bool), String> {
        let (mut file, size) = self.file(path)?;
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        let from = size.saturating_sub(bytes_max);
        file.seek(SeekFrom::Start(from)).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes).map_err(failed)?;
        Ok((bytes, from > 0))
    }

    fn file(&self, path: &Path) -> Result<(File, u64), String> {
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        let place = self.resolve(path)?;
        // Opening a pipe would wait for its other end.
        let found = fs::metadata(&place).map_err(failed)?;
        if !found.is_file() {
            return Err(format!("{} is not a file", path.display()));
        }
        Ok((File::open(place).map_err(failed)?, found.len()))
    }
}
