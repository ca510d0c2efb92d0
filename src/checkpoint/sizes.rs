//! How much the repositories of all directories take, and those of each who shares the space.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use agentsvc_components::kernel::holder::Holder;

use super::repository::Repository;
use crate::kernel::disk;

/// Shares of the space: the agents of a user with a limited role have one, and so has each other family of agents.
const SHARES: u64 = 4;

/// What each repository takes, and when it was last used.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    of: HashMap<PathBuf, Size>,
    total: u64,
    shares: HashMap<Holder, u64>,
    is_read: bool,
}

#[derive(Clone, Copy, Debug)]
struct Size {
    bytes: u64,
    used: SystemTime,
    /// Of whose share; `None` where that is not known.
    holder: Option<Holder>,
}

impl Sizes {
    /// Reads what those under `root` take, the first time. Blocks on the disk.
    pub(super) fn read(&mut self, root: &Path) {
        if std::mem::replace(&mut self.is_read, true) {
            return;
        }
        for dir in disk::entries(root).unwrap_or_default() {
            if let Some((bytes, used)) = Repository::size(&dir) {
                let holder = Repository::holder(&dir);
                self.put(dir, Size { bytes, used, holder });
            }
        }
    }

    /// The repository in `dir` takes so much, and is used now, by this holder or who had it before.
    pub(super) fn set(&mut self, dir: &Path, bytes: u64, holder: Option<Holder>) {
        let holder = holder.or_else(|| self.holder(dir));
        self.put(dir.to_owned(), Size { bytes, used: SystemTime::now(), holder });
    }

    /// Of whose share the repository in `dir` is, as far as that is known.
    pub(super) fn holder(&self, dir: &Path) -> Option<Holder> {
        self.of.get(dir).and_then(|size| size.holder)
    }

    fn put(&mut self, dir: PathBuf, size: Size) {
        self.forget(&dir);
        self.total = self.total.saturating_add(size.bytes);
        if let Some(holder) = size.holder {
            let share = self.shares.entry(holder).or_default();
            *share = share.saturating_add(size.bytes);
        }
        self.of.insert(dir, size);
    }

    /// The repository in `dir` is gone.
    pub(super) fn forget(&mut self, dir: &Path) {
        let Some(Size { bytes, holder, .. }) = self.of.remove(dir) else { return };
        self.total = self.total.saturating_sub(bytes);
        let Some(holder) = holder else { return };
        let left = self.shares.get(&holder).map_or(0, |share| share.saturating_sub(bytes));
        if left == 0 {
            self.shares.remove(&holder);
        } else {
            self.shares.insert(holder, left);
        }
    }

    /// The repositories that must go so that those of the holder of `but` take no more than a share of `most`, and all no more than
    /// `most`: those that were not used for longest, and never `but` itself.
    pub(super) fn oldest_over(&self, most: u64, but: &Path) -> Vec<PathBuf> {
        let holder = self.holder(but);
        let held = holder.and_then(|holder| self.shares.get(&holder)).copied().unwrap_or_default();
        let mut over_share = held.saturating_sub(most / SHARES);
        let mut over = self.total.saturating_sub(most);
        if (over_share, over) == (0, 0) {
            return Vec::new();
        }
        let mut others: Vec<_> = self.of.iter().filter(|(dir, _)| *dir != but).collect();
        others.sort_by_key(|(_, size)| size.used);
        let mut gone = Vec::new();
        for (dir, size) in &others {
            if over_share > 0 && size.holder == holder {
                over_share = over_share.saturating_sub(size.bytes);
                over = over.saturating_sub(size.bytes);
                gone.push((*dir).clone());
            }
        }
        for (dir, size) in others {
            if over > 0 && !gone.contains(dir) {
                over = over.saturating_sub(size.bytes);
                gone.push(dir.clone());
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::AgentId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn who_takes_more_than_a_share_gives_up_own_checkpoints() {
        let [one, other] = [1, 2].map(|family| Some(Holder::Family(AgentId(Uuid::from_u128(family)))));
        let mut sizes = Sizes::default();
        for (dir, bytes, holder) in [("other", 90, other), ("a", 60, one), ("b", 40, one)] {
            sizes.set(Path::new(dir), bytes, holder);
        }
        assert!(sizes.oldest_over(400, Path::new("b")).is_empty());
        sizes.set(Path::new("c"), 30, one);
        assert_eq!(sizes.oldest_over(400, Path::new("c")), [Path::new("a")]);
        sizes.forget(Path::new("a"));
        assert!(sizes.oldest_over(400, Path::new("c")).is_empty());
        // A restore says nothing of whose they are: they stay with who had them.
        sizes.set(Path::new("c"), 80, None);
        assert_eq!(sizes.oldest_over(400, Path::new("c")), [Path::new("b")]);
        sizes.forget(Path::new("b"));
        sizes.forget(Path::new("c"));
        assert_eq!((sizes.total, sizes.shares.len()), (90, 1));
    }
}
