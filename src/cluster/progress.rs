//! How far standbys are behind an owner whose changes wait for one: a standby that does not follow stops no writes.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use agentsvc_api::cluster::NodeRole;

use super::members::Members;

/// Milliseconds that a standby may be behind; one that is further behind is not waited for.
const BEHIND_MS: u64 = 2_000;
/// Under which word it is a problem that no standby is waited for.
pub(super) const ALONE: &str = "acks";
/// Milliseconds between two notes.
const NOTE_MS: u64 = 50;

/// Which entry the owner had when.
#[derive(Default)]
pub(super) struct Progress(VecDeque<(u64, u64)>);

impl Progress {
    /// At `now` it has the entry `index`. Gives the one that it had so long ago that a standby must have it by now.
    fn note(&mut self, now: u64, index: u64) -> u64 {
        if self.0.back().is_none_or(|(last, _)| now.saturating_sub(*last) >= NOTE_MS) {
            self.0.push_back((now, index));
        }
        let is_old = |note: &(u64, u64)| now.saturating_sub(note.0) >= BEHIND_MS;
        while self.0.get(1).is_some_and(is_old) {
            self.0.pop_front();
        }
        self.0.front().filter(|note| is_old(note)).map_or(0, |(_, index)| *index)
    }
}

impl Members {
    /// What this node had so long ago that a standby must have it by now.
    fn due(&self) -> u64 {
        self.progress.lock().note(self.now(), self.standing.index.load(Ordering::Acquire))
    }

    /// Has a standby the entry `index` on its disk? Where none follows, nobody can be waited for.
    pub(super) fn is_synced_elsewhere(&self, index: u64) -> bool {
        let (due, now) = (self.due(), self.now());
        let others = self.others.lock();
        let alive = others.values().filter(|it| it.is_alive(now) && it.beat.role() == NodeRole::Standby);
        let synced = alive.map(|it| it.beat.synced).filter(|synced| *synced >= due);
        synced.max().is_none_or(|synced| synced >= index)
    }

    /// Why changes that should wait for a standby wait for none, if they do.
    pub(super) fn why_alone(&self) -> Option<String> {
        let (due, now) = (self.due(), self.now());
        let others = self.others.lock();
        let alive = others.values().filter(|it| it.is_alive(now) && it.beat.role() == NodeRole::Standby);
        let behind: Vec<_> = alive.map(|it| (it.beat.synced, it.beat.node.as_str())).collect();
        if behind.iter().any(|(synced, _)| *synced >= due) {
            return None;
        }
        let why = match behind.as_slice() {
            [] => "no standby is alive".to_owned(),
            some => {
                let names: Vec<_> = some.iter().map(|(_, node)| *node).collect();
                format!("standbys are more than {} seconds behind: {}", BEHIND_MS / 1_000, names.join(", "))
            }
        };
        Some(format!("changes are acknowledged by the journal alone, although `acks` asks for a standby: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use super::super::members::Beat;
    use super::super::members::tests::{at, beat};
    use super::*;

    /// The owner, at entry 7, of standbys `a` and `c`, and its time.
    fn owner() -> (Members, Arc<AtomicU64>) {
        let now = Arc::new(AtomicU64::new(10_000));
        let members = at(&now);
        members.set_role(NodeRole::Owner);
        members.standing.index.store(7, Ordering::Relaxed);
        (members, now)
    }

    fn says(members: &Members, node: &str, synced: u64) {
        members.hear(Beat { synced, ..beat(node, NodeRole::Standby, 1, synced) });
    }

    #[test]
    fn an_entry_waits_for_a_standby_and_for_none_that_does_not_follow() {
        let (members, now) = owner();
        assert!(members.is_synced_elsewhere(7), "none is alive");
        assert!(members.why_alone().unwrap().contains("no standby is alive"));
        // The first note that counts.
        for _ in 0..BEHIND_MS / NOTE_MS {
            now.fetch_add(NOTE_MS, Ordering::Relaxed);
            says(&members, "a", 6);
            assert!(!members.is_synced_elsewhere(7) || now.load(Ordering::Relaxed) >= 10_000 + BEHIND_MS);
        }
        assert!(members.is_synced_elsewhere(7), "it is not waited for any longer");
        assert!(members.why_alone().unwrap().ends_with("2 seconds behind: a"));
        members.standing.index.store(8, Ordering::Relaxed);
        assert!(members.is_synced_elsewhere(8), "nor for the next entry");

        says(&members, "c", 7);
        assert!(!members.is_synced_elsewhere(8), "another one follows");
        assert_eq!(members.why_alone(), None);
        says(&members, "c", 8);
        assert!(members.is_synced_elsewhere(8));
        says(&members, "a", 8);
        assert!(members.is_synced_elsewhere(8), "it has caught up");
    }

    #[test]
    fn a_standby_that_is_always_a_little_behind_is_waited_for() {
        let (members, now) = owner();
        for index in 8..200 {
            members.standing.index.store(index, Ordering::Relaxed);
            now.fetch_add(NOTE_MS, Ordering::Relaxed);
            says(&members, "a", index.saturating_sub(10));
            assert!(!members.is_synced_elsewhere(index), "{index}");
            assert_eq!(members.why_alone(), None, "{index}");
        }
    }
}
