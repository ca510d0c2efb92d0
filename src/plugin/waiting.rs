//! A queue in which nobody waits: where it is full, whoever has most in it loses its newest, so that the turns of one user or family
//! of agents leave room for those of all others.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::kernel::holder::Holder;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Places of a queue, one of so many, that events never take: a flood of them leaves room for turns that have ended.
const KEPT_FROM_EVENTS: usize = 4;

/// Whose something is, and whether it is an event.
type Of = (bool, Option<Holder>);

/// What waits, the oldest first.
pub(super) struct Waiting<T> {
    most: usize,
    held: Mutex<Held<T>>,
    changed: Notify,
}

struct Held<T> {
    all: BTreeMap<u64, (Of, T)>,
    of: BTreeMap<Of, BTreeSet<u64>>,
    events: usize,
    next: u64,
    is_closed: bool,
}

impl<T> Held<T> {
    fn take(&mut self, at: u64) -> Option<T> {
        let (of, item) = self.all.remove(&at)?;
        if let Some(own) = self.of.get_mut(&of) {
            own.remove(&at);
            if own.is_empty() {
                self.of.remove(&of);
            }
        }
        self.events -= usize::from(of.0);
        Some(item)
    }

    /// Whoever has most loses its newest. Where there are too many events, that is one of them.
    fn drop_one(&mut self, of_events: bool) {
        let held = self.of.iter().filter(|((is_event, _), _)| *is_event || !of_events);
        let newest = held.max_by_key(|(_, own)| own.len()).and_then(|(_, own)| own.last().copied());
        newest.and_then(|at| self.take(at));
    }
}

impl<T> Waiting<T> {
    /// A queue with so many places.
    pub(super) fn new(most: usize) -> Self {
        let (all, of) = (BTreeMap::new(), BTreeMap::new());
        let held = Mutex::new(Held { all, of, events: 0, next: 0, is_closed: false });
        Self { most, held, changed: Notify::new() }
    }

    /// Puts something into it; false where something was dropped for it, or it was itself.
    pub(super) fn put(&self, holder: Option<Holder>, item: T, is_event: bool) -> bool {
        let mut held = self.held.lock();
        if held.is_closed {
            return false;
        }
        let (at, of) = (held.next, (is_event, holder));
        held.next += 1;
        held.all.insert(at, (of, item));
        held.of.entry(of).or_default().insert(at);
        held.events += usize::from(is_event);
        let too_many_events = is_event && held.events > self.most - self.most / KEPT_FROM_EVENTS;
        let is_over = too_many_events || held.all.len() > self.most;
        if is_over {
            held.drop_one(too_many_events);
        }
        drop(held);
        self.changed.notify_one();
        !is_over
    }

    /// Nothing comes any more: what waits is still given.
    pub(super) fn close(&self) {
        self.held.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// The oldest, as soon as there is one; `None` when nothing comes any more. For one reader.
    pub(super) async fn next(&self) -> Option<T> {
        loop {
            {
                let mut held = self.held.lock();
                if let Some(oldest) = held.all.keys().next().copied() {
                    return held.take(oldest);
                }
                if held.is_closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::kernel::id::UserId;
    use uuid::Uuid;

    use super::*;

    fn user(user: u128) -> Option<Holder> {
        Some(Holder::User(UserId(Uuid::from_u128(user))))
    }

    async fn rest(queue: &Waiting<u32>) -> Vec<u32> {
        queue.close();
        let mut found = Vec::new();
        while let Some(item) = queue.next().await {
            found.push(item);
        }
        found
    }

    #[tokio::test]
    async fn one_that_floods_a_queue_loses_its_newest_and_others_nothing() {
        let queue = Waiting::new(8);
        assert!((0..7).all(|n| queue.put(user(1), n, false)));
        assert!(queue.put(user(2), 10, false));
        assert!(!queue.put(user(2), 11, false), "something was dropped");
        assert!(!queue.put(user(1), 7, false));
        assert!(!queue.put(None, 20, false));
        assert_eq!(rest(&queue).await, [0, 1, 2, 3, 4, 10, 11, 20], "in the order in which they came");
        assert!(!queue.put(user(3), 30, false), "it is closed");
    }

    #[tokio::test]
    async fn events_leave_room_for_turns_and_are_dropped_for_them() {
        let queue = Waiting::new(8);
        assert!((0..6).all(|n| queue.put(user(1), n, true)));
        assert!(!queue.put(user(2), 10, true), "events have three quarters");
        assert!(queue.put(user(1), 20, false) && queue.put(user(2), 21, false));
        assert!(!queue.put(user(2), 22, false));
        assert_eq!(rest(&queue).await, [0, 1, 2, 3, 10, 20, 21, 22]);
    }
}
