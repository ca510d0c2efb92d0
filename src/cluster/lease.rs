//! An owner that answers reads must know that the world is still its own. What it appends says so, for a majority of the servers
//! has to take it; while nothing changes, it appends an entry that means nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_systems::kernel::engine::Commit;

use super::members::Members;
use crate::kernel::store::journal::LEASE_KEY;
use crate::kernel::store::writer::CommitQueue;

/// Milliseconds without an entry after which one is appended: half of what reads are answered for.
const RENEW_MS: u64 = 1_000;

/// What one owner knows of that.
pub(super) struct Lease {
    commits: Option<CommitQueue>,
    /// An entry is on its way.
    is_asked: Arc<AtomicBool>,
}

impl Lease {
    /// That of the owner whose writer is at the end of `commits`.
    pub(super) fn new(commits: Option<CommitQueue>) -> Self {
        Self { commits, is_asked: Arc::default() }
    }

    /// Called by an owner again and again.
    pub(super) fn look(&self, members: &Members) {
        let Some(commits) = &self.commits else { return };
        let now = members.now();
        if commits.waits_for_room() {
            // Nothing can be appended until the disk has room, and reads are to be answered meanwhile.
            members.standing.confirm(now);
        }
        if now.saturating_sub(members.standing.confirmed()) < RENEW_MS || self.is_asked.swap(true, Ordering::AcqRel) {
            return;
        }
        let is_asked = Arc::clone(&self.is_asked);
        let value = Some(members.standing.epoch.load(Ordering::Acquire).to_be_bytes().to_vec());
        let op = Op { space: Space::World, key: LEASE_KEY.to_vec(), value };
        let answered = move || is_asked.store(false, Ordering::Release);
        commits.send(Commit { ops: vec![op], releases: vec![Box::new(answered)], ..Commit::default() });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use agentsvc_api::cluster::NodeRole;

    use super::super::members::tests::at;
    use super::*;
    use crate::kernel::store::Store;
    use crate::kernel::store::writer::{Outlets, Writer};

    #[test]
    fn an_owner_that_rests_appends_now_and_then_and_one_that_cannot_is_not_believed() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path().join("world")).unwrap();
        let outlets = Outlets {
            effects: Arc::new(|_| {}),
            told: Arc::new(|_| {}),
            reopen: Arc::new(drop),
            fenced: Arc::new(|_| ()),
            fatal: Arc::new(drop),
        };
        let writer = Writer::start(store.clone(), outlets).unwrap();
        let now = Arc::new(AtomicU64::new(10_000));
        let members = at(&now);
        members.set_role(NodeRole::Owner);
        let lease = Lease::new(Some(writer.queue()));
        let written = || store.stats().commits.load(Ordering::Relaxed);
        assert!(!members.is_fresh(), "nothing says that it is the owner");
        members.standing.confirm(10_000);
        assert!(members.is_fresh());
        now.fetch_add(RENEW_MS - 1, Ordering::Relaxed);
        lease.look(&members);
        writer.queue().flush().unwrap();
        assert_eq!(written(), 0);
        now.fetch_add(1, Ordering::Relaxed);
        lease.look(&members);
        writer.queue().flush().unwrap();
        assert_eq!(written(), 1);
        // The beats of this node come back, as they do from a server that is cut off with it.
        now.fetch_add(RENEW_MS, Ordering::Relaxed);
        members.hear(members.beat());
        assert!(members.is_fresh());
        now.fetch_add(1, Ordering::Relaxed);
        members.hear(members.beat());
        assert_eq!((members.own_role(), members.is_fresh()), (NodeRole::Owner, false));
        writer.stop();
    }
}
