//! Places for requests that are passed on to another node, streams and WebSockets included. A request has one until the client has
//! its whole answer.
//!
//! | a request shows                             | of all places, beside those above it | of those, one has                    |
//! |---------------------------------------------|--------------------------------------|--------------------------------------|
//! | no key                                      | an eighth                            | a quarter: the clients of an address |
//! | a key that was not found right yet          | a quarter                            | a quarter: the clients of an address |
//! | the key of one with a limited role          | three quarters                       | a quarter                            |
//! | any other key, or none where none is needed | all                                  | three quarters                       |
//!
//! So a client that has shown a right key finds a place, whatever strangers do, and each leaves places to the others.

use std::collections::HashMap;
use std::sync::Arc;

use agentsvc_components::kernel::limit::POOL_SHARES;
use parking_lot::Mutex;

use crate::http::error::Error;
use crate::http::error_codes;
use crate::http::peer::Holder;
use crate::http::rate::ClientKey;

/// Seconds after which one may try again for whom there is no place.
const RETRY_SECS: u32 = 1;
/// Of all places, what those of a kind have together with those of the kinds before it, in eighths.
const EIGHTHS: [usize; 4] = [1, 2, 6, 8];

/// Whose places a request takes, as far as this node knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Asker {
    /// The clients of an address that show no key.
    Keyless(ClientKey),
    /// The clients of an address that show a key that was not found right yet.
    Unproven(ClientKey),
    /// One whose key was found right, or who needs none.
    Known(Holder),
}

impl Asker {
    const fn kind(self) -> usize {
        match self {
            Self::Keyless(_) | Self::Known(Holder::Keyless(_)) => 0,
            Self::Unproven(_) => 1,
            Self::Known(Holder::Limited(_)) => 2,
            Self::Known(Holder::Owner(_) | Holder::Named(_)) => 3,
        }
    }
}

/// The places.
#[derive(Debug)]
pub(crate) struct Forwards {
    all: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// Of each asker. No entry is 0.
    of: HashMap<Asker, usize>,
    /// Of all askers of each kind.
    kinds: [usize; EIGHTHS.len()],
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Forward {
    forwards: Arc<Forwards>,
    asker: Asker,
}

impl Forwards {
    /// So many in all.
    pub(crate) fn new(all: usize) -> Arc<Self> {
        Arc::new(Self { all, taken: Mutex::default() })
    }

    /// A place for a request of `asker`.
    ///
    /// # Errors
    /// 503 where there is none for it.
    pub(crate) fn take(self: &Arc<Self>, asker: Asker) -> Result<Forward, Error> {
        let full = |text: &str| Err(Error::of(error_codes::FORWARDS_FULL, text.to_owned()).retry_after(RETRY_SECS));
        let kind = asker.kind();
        let mut taken = self.taken.lock();
        let own = taken.of.get(&asker).copied().unwrap_or(0);
        if own >= self.share(kind) {
            return full("this node forwards too many requests for this client; try again in a moment");
        }
        if (kind..EIGHTHS.len()).any(|upto| taken.kinds[..=upto].iter().sum::<usize>() >= self.part(upto)) {
            return full("this node forwards too many requests; try again in a moment");
        }
        taken.kinds[kind] += 1;
        taken.of.insert(asker, own + 1);
        drop(taken);
        Ok(Forward { forwards: Arc::clone(self), asker })
    }

    /// What those of this kind may have together with those of the kinds before it.
    const fn part(&self, kind: usize) -> usize {
        let part = self.all * EIGHTHS[kind] / 8;
        if part == 0 { 1 } else { part }
    }

    /// What one of this kind may have.
    const fn share(&self, kind: usize) -> usize {
        let (part, quarter) = (self.part(kind), self.part(kind) / POOL_SHARES);
        let share = if kind == EIGHTHS.len() - 1 { part - quarter } else { quarter };
        if share == 0 { 1 } else { share }
    }

    /// Places that are taken.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.taken.lock().kinds.iter().sum()
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        let mut taken = self.forwards.taken.lock();
        taken.kinds[self.asker.kind()] -= 1;
        let left = taken.of.get(&self.asker).map_or(0, |own| own - 1);
        if left == 0 {
            taken.of.remove(&self.asker);
        } else {
            taken.of.insert(self.asker, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use uuid::Uuid;

    use super::*;

    const ALL: usize = 128;

    fn address(at: u8) -> ClientKey {
        ClientKey::of(IpAddr::V4(Ipv4Addr::new(192, 0, 2, at)))
    }

    /// As many as there are for `asker`.
    fn fill(forwards: &Arc<Forwards>, asker: Asker) -> Vec<Forward> {
        std::iter::from_fn(|| forwards.take(asker).ok()).collect()
    }

    fn filled(forwards: &Arc<Forwards>, askers: impl Fn(u8) -> Asker) -> Vec<Forward> {
        (0..=u8::MAX).flat_map(|at| fill(forwards, askers(at))).collect()
    }

    #[test]
    fn strangers_leave_places_to_those_with_keys() {
        let forwards = Forwards::new(ALL);
        let mut keyless = fill(&forwards, Asker::Keyless(address(1)));
        assert_eq!(keyless.len(), ALL / 32);
        keyless.extend(filled(&forwards, |at| Asker::Keyless(address(at))));
        assert_eq!(keyless.len(), ALL / 8);
        // A client that shows a key finds a place beside them, whether it is right or not.
        let mut unproven = fill(&forwards, Asker::Unproven(address(1)));
        assert_eq!(unproven.len(), ALL / 16);
        unproven.extend(filled(&forwards, |at| Asker::Unproven(address(at))));
        assert_eq!(unproven.len(), ALL / 8);
        let limited = filled(&forwards, |at| Asker::Known(Holder::Limited(Uuid::from_u128(at.into()))));
        assert_eq!(limited.len(), ALL / 2);
        let named = fill(&forwards, Asker::Known(Holder::Named(Uuid::from_u128(1))));
        assert_eq!((named.len(), forwards.taken()), (ALL / 4, ALL));
        drop((keyless, unproven, limited, named));
        let taken = forwards.taken.lock();
        assert!(taken.of.is_empty() && taken.kinds == [0; 4]);
    }

    #[test]
    fn each_leaves_places_to_others_like_it() {
        let forwards = Forwards::new(ALL);
        let limited = |at| Asker::Known(Holder::Limited(Uuid::from_u128(at)));
        let one = fill(&forwards, limited(1));
        assert_eq!(one.len(), ALL / 16 * 3);
        assert_eq!(fill(&forwards, limited(2)).len(), ALL / 16 * 3);
        drop(one);
        let owner = fill(&forwards, Asker::Known(Holder::Owner(address(1))));
        assert_eq!(owner.len(), ALL / 4 * 3);
        for other in [Asker::Keyless(address(2)), Asker::Unproven(address(2)), limited(3)] {
            assert!(forwards.take(other).is_ok(), "{other:?}");
        }
        let refused = forwards.take(Asker::Known(Holder::Owner(address(1)))).unwrap_err();
        assert_eq!(refused.status().as_u16(), 503);
    }

    #[test]
    fn the_smallest_pool_passes_something_on_for_everyone() {
        for all in [1, 2, 3] {
            let forwards = Forwards::new(all);
            for asker in
                [Asker::Keyless(address(1)), Asker::Unproven(address(1)), Asker::Known(Holder::Owner(address(1)))]
            {
                assert!(forwards.take(asker).is_ok(), "{all} {asker:?}");
            }
        }
    }
}
