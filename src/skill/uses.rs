//! How often agents use skills: their instructions read, or a tool of theirs called. Counted in memory, and written together once
//! a minute at most; a kill loses that minute.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_systems::skill::limits::SKILLS_MAX;
use parking_lot::Mutex;

use crate::kernel::{disk, free_space};

/// The file in the folder of skills.
pub(super) const FILE: &str = ".uses.json";
/// How long counts wait.
const WRITE_EVERY: Duration = Duration::from_secs(60);
/// Skills that are counted, also some that are gone. More are not.
const COUNTED_MAX: usize = 2 * SKILLS_MAX;

type Counts = BTreeMap<Box<str>, u64>;

/// The counts.
pub(super) struct Uses {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    unwritten: Counts,
    /// A write is to come.
    is_due: bool,
}

impl Uses {
    pub(super) fn new(path: PathBuf) -> Arc<Self> {
        Arc::new(Self { path, state: Mutex::default() })
    }

    /// Counts a use. Does not wait for the disk; on a thread of the runtime.
    pub(super) fn count(self: &Arc<Self>, skill: &str) {
        if !self.add(skill) {
            return;
        }
        let uses = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(WRITE_EVERY).await;
            let _interrupted = tokio::task::spawn_blocking(move || uses.write()).await;
        });
    }

    /// How often a skill was used. Blocks on the disk.
    pub(super) fn of(&self, skill: &str) -> u64 {
        let written = self.read().get(skill).copied().unwrap_or_default();
        written + self.state.lock().unwritten.get(skill).copied().unwrap_or_default()
    }

    /// True for the first use after a write: that one sees to the next write.
    fn add(&self, skill: &str) -> bool {
        let mut state = self.state.lock();
        *state.unwritten.entry(skill.into()).or_default() += 1;
        !std::mem::replace(&mut state.is_due, true)
    }

    fn read(&self) -> Counts {
        disk::read(&self.path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    fn write(&self) {
        let State { unwritten, .. } = std::mem::take(&mut *self.state.lock());
        let mut counts = self.read();
        add_all(&mut counts, unwritten.clone());
        let bytes = serde_json::to_vec(&counts).unwrap_or_default();
        let folder = self.path.parent().unwrap_or(&self.path);
        let written = free_space::check(folder, bytes.len() as u64).and_then(|()| disk::replace(&self.path, &bytes));
        if let Err(error) = written {
            tracing::warn!(%error, "the uses of skills could not be written");
            // The next use tries again.
            add_all(&mut self.state.lock().unwritten, unwritten);
        }
    }
}

fn add_all(counts: &mut Counts, more: Counts) {
    for (skill, count) in more {
        if counts.len() < COUNTED_MAX || counts.contains_key(&skill) {
            *counts.entry(skill).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_counted_and_written_together() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let uses = Uses::new(path.clone());
        assert_eq!([uses.add("a"), uses.add("a"), uses.add("b")], [true, false, false]);
        assert_eq!((uses.of("a"), uses.of("b"), uses.of("c")), (2, 1, 0));
        uses.write();
        assert!(uses.add("a"), "the next write is to come");
        assert_eq!((uses.of("a"), Uses::new(path).of("a")), (3, 2));
        let nowhere = Uses::new(dir.path().join("none").join(FILE));
        nowhere.add("a");
        nowhere.write();
        assert!(nowhere.add("a"), "it is tried again");
        assert_eq!(nowhere.of("a"), 2);
    }
}
