//! The other ends of connections: which address they come from, whether they have shown a valid key, and how many
//! answers the clients of an address, and of all, have not read.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use agentsvc_components::kernel::limit;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::http::rate::ClientKey;

/// Connections that are looked at for an idle one before the oldest is closed although it is answered.
const IDLE_LOOKS_MAX: usize = 64;

/// The addresses that have connections.
pub(crate) struct Peers {
    connected: Mutex<Connected>,
    /// Connections that may be open without having shown a key.
    keyless_max: usize,
    /// Bytes of small answers that the clients of all addresses have not read.
    unread_bytes: AtomicUsize,
}

/// The connections of all addresses.
#[derive(Default)]
struct Connected {
    of: HashMap<ClientKey, Of>,
    /// The addresses with connections that have shown no key: the one with the most comes last, and of those with as many
    /// the one whose oldest is the oldest.
    ranks: BTreeMap<Rank, ClientKey>,
    /// Connections that have shown no valid key.
    keyless: usize,
    /// Numbers connections in the order in which they came.
    next: u64,
}

/// How many connections without a key there are, and the number of the oldest.
type Rank = (usize, Reverse<u64>);

/// The connections of one address.
#[derive(Default)]
struct Of {
    connections: usize,
    /// Those that have shown no valid key, the oldest first.
    keyless: BTreeMap<u64, Arc<Line>>,
    address: Arc<Address>,
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
    fn change<T>(&mut self, key: ClientKey, change: impl FnOnce(&mut Of) -> T) -> T {
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

    /// Closes a connection of the address that has shown no key.
    fn close_one(&mut self, key: ClientKey) {
        let line = self.change(key, |of| of.dispensable().and_then(|number| of.keyless.remove(&number)));
        if let Some(line) = line {
            line.is_closed.notify_one();
        }
    }
}

/// What the server knows of a connection that has shown no key.
#[derive(Default)]
struct Line {
    /// Requests whose answer is not done.
    in_flight: AtomicUsize,
    /// Told when it has to make room for another.
    is_closed: Notify,
}

/// What the connections of one address have in common.
#[derive(Default)]
struct Address {
    /// Answers over HTTP/2 of which the client has not taken all that is ready: those of connections without a key, and
    /// those of connections with one.
    unread: [AtomicUsize; 2],
}

impl Peers {
    /// For so many connections in all; half of them may be without a key.
    pub(crate) fn new(connections_max: usize) -> Self {
        let keyless_max = (connections_max / 2).clamp(1, limit::CONNECTIONS_KEYLESS_ALL_MAX);
        Self { connected: Mutex::default(), keyless_max, unread_bytes: AtomicUsize::new(0) }
    }

    /// A connection from `ip`, which needs no key when `is_trusted`. Where its address has too many that have shown none,
    /// the oldest idle one of them is closed; where all addresses have, that of the address that has the most.
    pub(crate) fn connect(self: &Arc<Self>, ip: IpAddr, is_trusted: bool) -> Peer {
        let (key, line) = (ClientKey::of(ip), Arc::<Line>::default());
        let mut connected = self.connected.lock();
        let number = connected.next;
        connected.next += 1;
        if !is_trusted {
            let own = connected.of.get(&key).map_or(0, |of| of.keyless.len());
            let fullest = connected.ranks.last_key_value().map(|(_, key)| *key);
            if own >= limit::CONNECTIONS_KEYLESS_MAX.min(self.keyless_max) {
                connected.close_one(key);
            } else if let Some(fullest) = fullest.filter(|_| connected.keyless >= self.keyless_max) {
                connected.close_one(fullest);
            }
            connected.change(key, |of| of.keyless.insert(number, Arc::clone(&line)));
        }
        let of = connected.of.entry(key).or_default();
        of.connections += 1;
        let address = Arc::clone(&of.address);
        drop(connected);
        let (has_key, refused) = (AtomicBool::new(is_trusted), AtomicU32::new(0));
        Peer { ip, key, number, line, address, has_key, refused, peers: Arc::clone(self) }
    }

    /// Bytes of small answers that clients have not read.
    pub(crate) fn unread_bytes(&self) -> usize {
        self.unread_bytes.load(Ordering::Relaxed)
    }
}

/// Whose memory an answer takes: connections that have shown a valid key count apart from those of their address that
/// have not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holder {
    key: ClientKey,
    /// It has shown a valid key, or needed none.
    pub(crate) has_key: bool,
}

impl Holder {
    pub(crate) const fn of(key: ClientKey, has_key: bool) -> Self {
        Self { key, has_key }
    }
}

/// The other end of one connection.
pub(crate) struct Peer {
    /// Where it is.
    pub(crate) ip: IpAddr,
    key: ClientKey,
    number: u64,
    line: Arc<Line>,
    address: Arc<Address>,
    /// It has shown a valid key, or needed none when it connected.
    has_key: AtomicBool,
    /// Its requests since the last one that was not refused for asking too often.
    refused: AtomicU32,
    peers: Arc<Peers>,
}

impl Peer {
    /// Has it shown a valid key?
    pub(crate) fn has_key(&self) -> bool {
        self.has_key.load(Ordering::Relaxed)
    }

    /// Whose memory its answers take.
    pub(crate) fn holder(&self) -> Holder {
        Holder::of(self.key, self.has_key())
    }

    /// It has shown a valid key.
    pub(crate) fn show_key(&self) {
        if !self.has_key() && !self.has_key.swap(true, Ordering::Relaxed) {
            self.peers.connected.lock().change(self.key, |of| of.keyless.remove(&self.number));
        }
    }

    /// Waits until it has to make room for another connection.
    pub(crate) async fn closed(&self) {
        self.line.is_closed.notified().await;
    }

    /// A request begins.
    pub(crate) fn begin(&self) {
        self.line.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// Its answer is done.
    pub(crate) fn end(&self) {
        self.line.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// A request was refused because its client asks too often, or it was not.
    pub(crate) fn count_refusal(&self, is_refused: bool) {
        if is_refused {
            self.refused.fetch_add(1, Ordering::Relaxed);
        } else {
            self.refused.store(0, Ordering::Relaxed);
        }
    }

    /// Has it been refused so often in a row that its connection is to be closed?
    pub(crate) fn takes_no_refusal(&self) -> bool {
        self.refused.load(Ordering::Relaxed) >= limit::REFUSALS_MAX
    }

    /// An answer waits for the client; `has_key` says with which ones it counts.
    pub(crate) fn wait(&self, has_key: bool) {
        self.address.unread[usize::from(has_key)].fetch_add(1, Ordering::Relaxed);
    }

    /// The client took it, or it is given up.
    pub(crate) fn take(&self, has_key: bool) {
        self.address.unread[usize::from(has_key)].fetch_sub(1, Ordering::Relaxed);
    }

    /// Does the address leave too many answers unread, on connections like this one, or do all addresses together?
    pub(crate) fn reads_too_little(&self) -> bool {
        let own = self.address.unread[usize::from(self.has_key())].load(Ordering::Relaxed);
        own >= limit::ANSWERS_UNREAD_MAX || self.is_full(limit::ANSWERS_SMALL_BYTES_MAX)
    }

    /// Do all addresses leave more than half of what they may unread? Then what is not read has less time.
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_full(limit::ANSWERS_SMALL_BYTES_MAX / 2)
    }

    /// Do all addresses leave so much unread? Connections that have shown no key have half of it.
    fn is_full(&self, most: usize) -> bool {
        self.peers.unread_bytes() >= if self.has_key() { most } else { most / 2 }
    }

    /// So many bytes of small answers wait for the client.
    pub(crate) fn hold(&self, bytes: usize) {
        self.peers.unread_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// They are taken, or given up.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.peers.unread_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.show_key();
        let of = &mut self.peers.connected.lock().of;
        if let Some(left) = of.get_mut(&self.key) {
            left.connections -= 1;
            if left.connections == 0 {
                of.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures_util::FutureExt;

    use super::*;

    const ONE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

    /// Has the connection to make room?
    fn is_closed(peer: &Peer) -> bool {
        peer.closed().now_or_never().is_some()
    }

    #[test]
    fn the_oldest_idle_connection_of_an_address_with_too_many_without_a_key_makes_room() {
        let peers = Arc::new(Peers::new(limit::CONNECTIONS_MAX));
        let mut open: Vec<_> = (0..limit::CONNECTIONS_KEYLESS_MAX).map(|_| peers.connect(ONE, false)).collect();
        let others = (peers.connect(ONE, true), peers.connect(OTHER, false));
        open[0].show_key();
        open[0].show_key();
        open[1].begin();
        open.push(peers.connect(ONE, false));
        assert!(!open.iter().any(is_closed), "one has shown its key");
        open.push(peers.connect(ONE, false));
        let closed: Vec<_> = open.iter().map(is_closed).collect();
        assert_eq!(closed.iter().position(|closed| *closed), Some(2), "the first has a key, the second is answered");
        assert_eq!(closed.iter().filter(|closed| **closed).count(), 1);
        open.iter().for_each(Peer::begin);
        open.push(peers.connect(ONE, false));
        assert!(is_closed(&open[1]), "all are answered");
        drop((open, others));
        let connected = peers.connected.lock();
        assert!(connected.of.is_empty() && connected.ranks.is_empty() && connected.keyless == 0);
    }

    #[test]
    fn many_addresses_together_leave_half_of_all_places_to_those_with_a_key() {
        let peers = Arc::new(Peers::new(100));
        let address = |n: u32| IpAddr::V4(Ipv4Addr::from_bits(n));
        let mut open: Vec<_> =
            (0..5).flat_map(|n| (0..10).map(move |_| n)).map(|n| peers.connect(address(n), false)).collect();
        assert!(!open.iter().any(is_closed));
        let lone = peers.connect(address(9), false);
        assert_eq!((open.iter().filter(|peer| is_closed(peer)).count(), peers.connected.lock().keyless), (1, 50));
        for n in 0..1_000 {
            open.push(peers.connect(address(n % 5), false));
        }
        assert!(!is_closed(&lone), "the address with the most makes room");
        assert_eq!(peers.connected.lock().keyless, 50);
        // A client with the key comes in without one, and takes none of their places once it has shown it.
        lone.show_key();
        assert_eq!(peers.connected.lock().keyless, 49);
        // Where each address has one, the oldest goes.
        let each: Vec<_> = (100..151).map(|n| peers.connect(address(n), false)).collect();
        drop(open);
        let more: Vec<_> = (200..200 + 50).map(|n| peers.connect(address(n), false)).collect();
        let last = peers.connect(address(7), false);
        assert!(each.iter().any(is_closed) && !is_closed(&last) && more.len() == 50);
    }

    #[test]
    fn refusals_count_while_they_follow_each_other() {
        let peer = Arc::new(Peers::new(9)).connect(ONE, true);
        (1..limit::REFUSALS_MAX).for_each(|_| peer.count_refusal(true));
        assert!(!peer.takes_no_refusal());
        peer.count_refusal(false);
        (1..limit::REFUSALS_MAX).for_each(|_| peer.count_refusal(true));
        assert!(!peer.takes_no_refusal());
        peer.count_refusal(true);
        assert!(peer.takes_no_refusal());
    }

    #[test]
    fn unread_answers_count_by_address() {
        let peers = Arc::new(Peers::new(limit::CONNECTIONS_MAX));
        let [one, same, other] = [ONE, ONE, OTHER].map(|ip| peers.connect(ip, false));
        (0..limit::ANSWERS_UNREAD_MAX).for_each(|_| one.wait(false));
        assert!(same.reads_too_little() && !other.reads_too_little());
        one.show_key();
        assert!(!one.reads_too_little(), "those with a key count apart");
        one.take(false);
        assert!(!same.reads_too_little());
    }

    #[test]
    fn bytes_of_small_answers_count_over_all_addresses() {
        let peers = Arc::new(Peers::new(limit::CONNECTIONS_MAX));
        let [one, other, keyless] = [(ONE, true), (OTHER, true), (ONE, false)].map(|(ip, key)| peers.connect(ip, key));
        let half = limit::ANSWERS_SMALL_BYTES_MAX / 2;
        one.hold(half - 1);
        assert!(!keyless.reads_too_little() && keyless.is_crowded() && !one.is_crowded());
        other.hold(1);
        assert!(keyless.reads_too_little() && one.is_crowded() && !one.reads_too_little());
        other.hold(half);
        assert!(one.reads_too_little() && other.reads_too_little());
        one.give_back(half);
        other.give_back(half);
        assert!(!keyless.is_crowded() && peers.unread_bytes() == 0);
    }
}
