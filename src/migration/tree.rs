//! A directory that is read and never left: no link leads out of it, no file is read beyond a bound.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use agentsvc_components::kernel::limit;
use rustix::fs::{Dir, OFlags};

use crate::kernel::openat2;

/// Entries of one directory that are looked at; more are left out.
const ENTRIES_MAX: usize = limit::MIGRATION_ITEMS_MAX;

/// The directory.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    root: PathBuf,
    /// The same, open: what is in it may change while it is read.
    directory: Arc<File>,
}

impl Tree {
    /// Opens a directory.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let root = fs::canonicalize(path)?;
        let directory = File::open(&root)?;
        if !directory.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root, directory: Arc::new(directory) })
    }

    /// Where it is, links resolved.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Opens what is at `path` with links resolved; an error when it leads out of the root. What was resolved is opened
    /// name by name: a link that has taken the place of one is not followed.
    fn open_at(&self, path: &Path, flags: OFlags) -> Result<File, String> {
        let place = self.resolve(path)?;
        let inner = place.strip_prefix(&self.root).ok().and_then(Path::to_str);
        let inner = inner.ok_or_else(|| format!("{} is not text", path.display()))?;
        // Opening a pipe would wait for its other end.
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = openat2::no_links(self.directory.as_fd(), if inner.is_empty() { "." } else { inner }, flags);
        opened.map(File::from).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn metadata(&self, path: &Path) -> Option<fs::Metadata> {
        self.open_at(path, OFlags::PATH).ok()?.metadata().ok()
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
        self.metadata(path.as_ref()).is_some_and(|found| found.is_file())
    }

    /// Is `path` a directory in here?
    pub(super) fn is_dir(&self, path: impl AsRef<Path>) -> bool {
        self.metadata(path.as_ref()).is_some_and(|found| found.is_dir())
    }

    /// The names in a directory, sorted; none when it is not there. Hidden ones and those that are no text are left out.
    pub(super) fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let opened = self.open_at(path.as_ref(), OFlags::RDONLY | OFlags::DIRECTORY);
        let Some(entries) = opened.ok().and_then(|directory| Dir::new(directory).ok()) else {
            return Vec::new();
        };
        let names =
            entries.take(ENTRIES_MAX).filter_map(|entry| entry.ok()?.file_name().to_str().map(str::to_owned).ok());
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
        let file = self.open_at(path, OFlags::RDONLY)?;
        let found = file.metadata().map_err(failed)?;
        if found.is_file() { Ok((file, found.len())) } else { Err(format!("{} is not a file", path.display())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::testing::Exchanging;

    #[test]
    fn nothing_outside_is_read_while_directories_and_links_are_exchanged() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        fs::create_dir_all(outside.join("inner")).unwrap();
        for file in ["file", "inner/file", "secret"] {
            fs::write(outside.join(file), "outside").unwrap();
        }
        let exchanging = Exchanging::begin(&root, &outside);
        let tree = Tree::open(&root).unwrap();
        for round in 0..100 {
            for path in ["d0/file", "d1/inner/file", "f2", "x-d3/file", "x-f4"] {
                assert!(tree.text(path).map_or(true, |text| text == "own"), "round {round}: {path}");
            }
            assert!(!tree.names("d5").contains(&"secret".to_owned()), "round {round}");
        }
        drop(exchanging);
        // A link that stays inside is followed.
        std::os::unix::fs::symlink(root.join("d0"), root.join("inside")).unwrap();
        assert!(tree.is_dir("inside") == tree.is_dir("d0") && tree.is_dir("") && !tree.is_file("../outside/file"));
    }
}
