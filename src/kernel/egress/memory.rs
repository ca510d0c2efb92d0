//! Memory for the answers to browsers' requests. Each family of agents, or user, has a share of its own, which it takes in pieces as bytes
//! come: a page whose sites are slow keeps no other family waiting. Beyond its share one answer of a family grows at a time, so
//! that one always ends.

use std::collections::HashMap;
use std::sync::Arc;

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::limit::WEB_RELAYED_BYTES_MAX;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of memory in one unit.
const UNIT_BYTES: usize = 1 << 10;
/// Bytes of a body that are taken at a time.
const PIECE_BYTES: usize = 64 << 10;

/// The shares of all families that have answers under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares(Arc<Mutex<HashMap<Holder, Arc<Share>>>>);

#[derive(Debug)]
struct Share {
    units: Arc<Semaphore>,
    /// The place of the one answer that may grow beyond them.
    beyond: Arc<Semaphore>,
}

/// What one answer has, until it is dropped.
#[derive(Debug)]
pub(crate) struct Memory {
    holder: Holder,
    shares: Shares,
    share: Arc<Share>,
    units: Option<OwnedSemaphorePermit>,
    beyond: Option<OwnedSemaphorePermit>,
}

impl Shares {
    /// Nothing yet, for an answer to a browser of the family.
    pub(super) fn of(&self, holder: Holder) -> Memory {
        let new = || {
            let units = Arc::new(Semaphore::new(WEB_RELAYED_BYTES_MAX / UNIT_BYTES));
            Arc::new(Share { units, beyond: Arc::new(Semaphore::new(1)) })
        };
        let share = Arc::clone(self.0.lock().entry(holder).or_insert_with(new));
        Memory { holder, shares: self.clone(), share, units: None, beyond: None }
    }
}

impl Memory {
    /// Waits until there is memory for a body of so many bytes in all, and for its text.
    pub(super) async fn hold(&mut self, bytes: usize) {
        let has = self.units.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = u32::try_from(units(bytes).saturating_sub(has)).unwrap_or(u32::MAX);
        if more == 0 || self.beyond.is_some() {
            return;
        }
        let (units, beyond) = (Arc::clone(&self.share.units), Arc::clone(&self.share.beyond));
        // Never closed, so that an error cannot be.
        tokio::select! {
            biased;
            Ok(taken) = units.acquire_many_owned(more) => match &mut self.units {
                Some(units) => units.merge(taken),
                none => *none = Some(taken),
            },
            Ok(taken) = beyond.acquire_owned() => self.beyond = Some(taken),
            else => {}
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        (self.units, self.beyond) = (None, None);
        let mut shares = self.shares.0.lock();
        // Only the map and this have it.
        if Arc::strong_count(&self.share) == 2 {
            shares.remove(&self.holder);
        }
    }
}

/// Units for a body and its text in Base64, in whole pieces.
fn units(bytes: usize) -> usize {
    bytes.next_multiple_of(PIECE_BYTES) / UNIT_BYTES * 7 / 3
}

#[cfg(test)]
mod tests {
    use agentsvc_components::AgentId;
    use futures_util::FutureExt;
    use uuid::Uuid;

    use super::*;

    const LARGE: usize = 5 << 20;

    #[test]
    fn one_answer_grows_beyond_the_share_and_other_families_have_their_own() {
        let shares = Shares::default();
        let [one, other] = [1, 2].map(|id| Holder::Family(AgentId(Uuid::from_u128(id))));
        let hold = |holder, bytes| {
            let mut memory = shares.of(holder);
            memory.hold(bytes).now_or_never().map(|()| memory)
        };
        // One fits into the share, one more grows beyond it, and the third waits.
        let mut held = vec![hold(one, LARGE).unwrap(), hold(one, LARGE).unwrap()];
        assert!(held[0].beyond.is_none() && held[1].beyond.is_some());
        assert!(hold(one, LARGE).is_none());
        assert!(hold(one, 1).is_some(), "a small one need not wait");
        assert!(hold(other, LARGE).is_some(), "nor one of another family");
        assert!(held[1].hold(4 * LARGE).now_or_never().is_some(), "the one beyond the share always ends");
        held.pop();
        assert!(hold(one, LARGE).is_some_and(|memory| memory.beyond.is_some()));
        drop(held);
        assert!(shares.0.lock().is_empty());
    }
}
