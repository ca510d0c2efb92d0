//! How much the repositories of all directories take.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::repository::Repository;
use crate::kernel::disk;

/// What each repository takes, and when it was last used.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    of: HashMap<PathBuf, (u64, SystemTime)>,
    total: u64,
    is_read: bool,
}

impl Sizes {
    /// Reads what those under `root` take, the first time. Blocks on the disk.
    pub(super) fn read(&mut self, root: &Path) {
        if std::mem::replace(&mut self.is_read, true) {
            return;
        }
        for dir in disk::entries(root).unwrap_or_default() {
            if let Some((bytes, used)) = Repository::size(&dir) {
                self.put(dir, bytes, used);
            }
        }
    }

    /// The repository in `dir` takes so much, and is used now.
    pub(super) fn set(&mut self, dir: &Path, bytes: u64) {
        self.put(dir.to_owned(), bytes, SystemTime::now());
    }

    fn put(&mut self, dir: PathBuf, bytes: u64, used: SystemTime) {
        let before = self.of.insert(dir, (bytes, used)).map_or(0, |(bytes, _)| bytes);
        self.total = self.total.saturating_add(bytes).saturating_sub(before);
    }

    /// The repository in `dir` is gone.
    pub(super) fn forget(&mut self, dir: &Path) {
        let (bytes, _) = self.of.remove(dir).unwrap_or((0, SystemTime::UNIX_EPOCH));
        self.total = self.total.saturating_sub(bytes);
    }

    /// The repositories that must go so that all take no more than `most`: those that were not used for longest, and never the one
    /// in `but`.
    pub(super) fn oldest_over(&self, most: u64, but: &Path) -> Vec<PathBuf> {
        let mut over = self.total.saturating_sub(most);
        if over == 0 {
            return Vec::new();
        }
        let mut others: Vec<_> = self.of.iter().filter(|(dir, _)| *dir != but).collect();
        others.sort_by_key(|(_, (_, used))| *used);
        let mut gone = Vec::new();
        for (dir, (bytes, _)) in others {
            if over == 0 {
                break;
            }
            over = over.saturating_sub(*bytes);
            gone.push(dir.clone());
        }
        gone
    }
}
