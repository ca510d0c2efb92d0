//! What the connections of all addresses, and of those with a limited role, take.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use uuid::Uuid;

use crate::http::rate::ClientKey;

/// Connections that are looked at for an idle one before the oldest is closed although it is answered.
const IDLE_LOOKS_MAX: usize = 64;

/// The connections of all addresses.
#[derive(Default)]
pub(super) struct Connected {
    pub(super) of: HashMap<ClientKey, Of>,
    /// The addresses with connections that have shown no key: the one with the most comes last, and of those with as many
    /// the one whose oldest is the oldest.
    pub(super) ranks: BTreeMap<Rank, ClientKey>,
    /// Connections that have shown no valid key.
    pub(super) keyless: usize,
    /// What those with a limited role have.
    pub(super) users: HashMap<Uuid, Part>,
    /// What they have together.
    pub(super) limited: Part,
    /// Numbers connections in the order in which they came.
    pub(super) next: u64,
}

/// What one with a limited role has, or all such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) connections: usize,
    /// Requests whose answer is not done, and WebSockets.
    pub(super) requests: usize,
}

/// How many connections without a key there are, and the number of the oldest.
type Rank = (usize, Reverse<u64>);

/// The connections of one address.
#[derive(Default)]
pub(super) struct Of {
    pub(super) connections: usize,
    /// Those that have shown no valid key, the oldest first.
    pub(super) keyless: BTreeMap<u64, Arc<Line>>,
    pub(super) address: Arc<Address>,
}

impl Of {
    fn rank(&self) -> Option<Rank> {
        self.keyless.first_key_value().map(|(oldest, _)| (self.keyless.len(), Reverse(*oldest)))
    }

    /// The connection that makes room: the oldest that is idle, or the oldest.
    fn dispensable(&self) -> Option<u64> {
        let is_idle = |line: &Line| line.in_flight.load(Ordering::Relaxed) == 0;
        let idle = self.keyless.iter().take(IDLE_LOOKS_MAX).find(|(_, line)| is_idle(line));
        idle.or_else(|| self.keyless.first_key_value()).map(|(number, _)| *number)
    }
}

impl Connected {
    /// Changes the connections of an address that have shown no key.
    pub(super) fn change<T>(&mut self, key: ClientKey, change: impl FnOnce(&mut Of) -> T) -> T {
        let of = self.of.entry(key).or_default();
        if let Some(rank) = of.rank() {
            self.ranks.remove(&rank);
        }
        let before = of.keyless.len();
        let changed = change(of);
        self.keyless = self.keyless + of.keyless.len() - before;
        if let Some(rank) = of.rank() {
            self.ranks.insert(rank, key);
        }
        changed
    }

    /// Changes what one with a limited role has.
    pub(super) fn change_part(&mut self, user: Uuid, change: impl FnOnce(&mut Part)) {
        let part = self.users.entry(user).or_default();
        change(part);
        if *part == Part::default() {
            self.users.remove(&user);
        }
    }

    pub(super) fn part(&self, user: Uuid) -> Part {
        self.users.get(&user).copied().unwrap_or_default()
    }

    /// Closes a connection of the address that has shown no key.
    pub(super) fn close_one(&mut self, key: ClientKey) {
        let line = self.change(key, |of| of.dispensable().and_then(|number| of.keyless.remove(&number)));
        if let Some(line) = line {
            line.is_closed.notify_one();
        }
    }
}

/// What the server knows of a connection that has shown no key.
#[derive(Default)]
pub(super) struct Line {
    /// Requests whose answer is not done.
    pub(super) in_flight: AtomicUsize,
    /// Told when it has to make room for another.
    pub(super) is_closed: Notify,
}

/// What the connections of one address have in common.
#[derive(Default)]
pub(super) struct Address {
    /// Answers over HTTP/2 of which the client has not taken all that is ready: those of connections without a key, and
    /// those of connections with one.
    pub(super) unread: [AtomicUsize; 2],
}
