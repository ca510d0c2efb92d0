//! Places for what requests do at once: so many in all, and fewer for one user, so that others find some.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::http::principal;

/// The places, and those that are taken.
#[derive(Debug)]
pub struct Slots {
    all: usize,
    of_one: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    /// By user, or named key without one. No entry is 0.
    of: HashMap<Uuid, usize>,
}

/// One place, until it is dropped.
#[derive(Debug)]
pub struct Slot {
    slots: Arc<Slots>,
    of: Option<Uuid>,
}

impl Slots {
    /// So many in all, and so many for one user or named key.
    #[must_use]
    pub fn new(all: usize, of_one: usize) -> Arc<Self> {
        Arc::new(Self { all, of_one, open: Mutex::default() })
    }

    /// A place for whoever acts; `None` when there is none.
    #[must_use]
    pub fn take(self: &Arc<Self>) -> Option<Slot> {
        let (of, mut open) = (principal::actor().user_or_key(), self.open.lock());
        let own = of.and_then(|of| open.of.get(&of).copied()).unwrap_or(0);
        if open.all >= self.all || of.is_some() && own >= self.of_one {
            return None;
        }
        open.all += 1;
        if let Some(of) = of {
            open.of.insert(of, own + 1);
        }
        drop(open);
        Some(Slot { slots: Arc::clone(self), of })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.slots.open.lock();
        open.all -= 1;
        let Some(of) = self.of else { return };
        let left = open.of.get(&of).map_or(0, |own| own - 1);
        if left == 0 {
            open.of.remove(&of);
        } else {
            open.of.insert(of, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::Actor;
    use agentsvc_components::kernel::id::{KeyId, UserId};

    use super::*;

    #[test]
    fn one_user_leaves_places_to_others() {
        let slots = Slots::new(8, 2);
        let by = |key: usize, user: Option<u128>| Actor::Key {
            key: KeyId(Uuid::from_u128(key as u128)),
            user: user.map(|user| UserId(Uuid::from_u128(user))),
        };
        let take = |actor| principal::acting_now(actor, || slots.take());
        // Whichever of the user's keys it is.
        let mut open: Vec<_> = (0..2).map(|at| take(by(at % 2, Some(7))).unwrap()).collect();
        assert!(take(by(0, Some(7))).is_none());
        open.push(take(by(9, None)).unwrap());
        open.push(take(Actor::Api).unwrap());
        open.remove(0);
        open.push(take(by(1, Some(7))).unwrap());
        assert!(take(by(1, Some(7))).is_none());
        open.extend((4..8).map(|_| take(Actor::Api).unwrap()));
        assert!(take(Actor::Api).is_none() && take(by(2, Some(8))).is_none());
        drop(open);
        let left = slots.open.lock();
        assert!(left.all == 0 && left.of.is_empty());
    }
}
