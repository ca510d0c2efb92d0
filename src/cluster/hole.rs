//! A journal that has lost entries in its midst: whoever has not applied them cannot follow any more. The owner can go on, for it has
//! them; it makes a copy of the world for those who say that they lack them, and cuts the journal up to there.

use std::sync::atomic::Ordering;
use std::time::Duration;

use agentsvc_api::cluster::NodeRole;

use super::members::Members;
use super::node::{Node, PAUSE};
use crate::kernel::store::journal::entry::Position;
use crate::kernel::store::{Error, Store};

/// How often it is tried to go on.
const TRIES_MAX: u32 = 12;
/// Tries for which an old copy of the stream may be what was read.
const TRIES_UNSURE: u32 = 2;
/// The pause before the first try, doubled up to the longest.
const REST: Duration = Duration::from_millis(500);
const REST_MAX: Duration = Duration::from_secs(60);

/// What can be done.
enum Remedy {
    /// The entry is there after all.
    Follow,
    /// The journal goes on from this copy, which holds the entry.
    Copy(String, Position),
}

/// How long to wait before this try, from 1 on.
fn rest_before(attempt: u32) -> Duration {
    REST.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(REST_MAX)
}

impl Members {
    /// The newest entry that nodes which are alive lack, and which is not in the journal.
    pub(super) fn lacking(&self) -> Option<u64> {
        let now = self.now();
        let others = self.others.lock();
        others.values().filter(|it| it.is_alive(now)).filter_map(|it| it.beat.lacks).max()
    }

    /// This node follows: it lacks nothing.
    pub(super) fn lacks_nothing(&self) {
        self.lacks.store(0, Ordering::Release);
        self.set_problem("hole", None);
    }
}

impl Node {
    /// Ends to follow, because the entry `index` is gone, and goes on from a copy of the world that holds it as soon as there is
    /// one. Gives the store; `None` when the daemon stops before.
    ///
    /// # Errors
    /// There is none for long.
    pub(super) fn past_hole(&self, store: Store, index: u64) -> Result<Option<Store>, String> {
        let text = format!("the journal has lost entry {index}, so this node does not follow it");
        self.members.set_role(NodeRole::Joining);
        self.members.set_problem("hole", Some(format!("{text} until there is a copy of the world with that entry")));
        self.members.lacks.store(index, Ordering::Release);
        while !self.is_stopping() {
            let attempt = self.tries.get() + 1;
            self.tries.set(attempt);
            if attempt > TRIES_MAX {
                return Err(format!("{text}, and no other node has made a copy of the world; see docs/cluster.md"));
            }
            self.rest(rest_before(attempt));
            match self.remedy(index, attempt) {
                Ok(Some(Remedy::Follow)) => return Ok(Some(store)),
                Ok(Some(Remedy::Copy(name, position))) => {
                    let built = self.rebuild(store, Some((name, position)))?;
                    self.members.lacks_nothing();
                    return Ok(built);
                }
                Ok(None) => {}
                Err(error @ Error::Journal(_)) => tracing::debug!(%error, "it is not known how to go on"),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(None)
    }

    fn remedy(&self, index: u64, attempt: u32) -> Result<Option<Remedy>, Error> {
        let wire = &self.wire;
        if attempt <= TRIES_UNSURE && wire.wait(wire.message(index))?.is_some() {
            return Ok(Some(Remedy::Follow));
        }
        for copy in wire.wait(wire.copies())?.into_iter().rev().take_while(|copy| copy.position.index >= index) {
            match wire.wait(wire.goes_on_from(&copy.position)) {
                Ok(()) => return Ok(Some(Remedy::Copy(copy.snapshot, copy.position))),
                Err(Error::Lost { .. } | Error::Trimmed { .. } | Error::Diverged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Waits, unless the daemon stops.
    fn rest(&self, mut time: Duration) {
        while !self.is_stopping() && !time.is_zero() {
            let piece = time.min(PAUSE);
            std::thread::sleep(piece);
            time -= piece;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use super::super::members::tests::{at, beat};
    use super::super::members::{Beat, SILENCE_MS};
    use super::*;

    #[test]
    fn each_try_comes_later_than_the_one_before_and_they_end() {
        let rests: Vec<u64> = (1..=TRIES_MAX).map(|attempt| rest_before(attempt).as_secs()).collect();
        assert_eq!(rests, [0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]);
        assert_eq!(rest_before(u32::MAX), REST_MAX);
    }

    #[test]
    fn an_owner_knows_what_others_lack() {
        let now = Arc::new(AtomicU64::new(10_000));
        let members = at(&now);
        members.hear(beat("a", NodeRole::Standby, 1, 9));
        assert_eq!(members.lacking(), None);
        members.hear(Beat { lacks: Some(7), ..beat("c", NodeRole::Joining, 1, 6) });
        assert_eq!(members.lacking(), Some(7));
        now.fetch_add(SILENCE_MS, Ordering::Relaxed);
        assert_eq!(members.lacking(), None, "it is gone");
        members.lacks.store(7, Ordering::Relaxed);
        assert_eq!(members.beat().lacks, Some(7));
        members.lacks_nothing();
        assert_eq!(members.beat().lacks, None);
    }
}
