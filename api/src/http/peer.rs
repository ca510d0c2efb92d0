//! The other ends of connections: which address they come from, whether they have shown a valid key, and how many
//! answers the clients of an address, and of all, have not read.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use agentsvc_components::kernel::limit;
use parking_lot::Mutex;

use crate::http::rate::ClientKey;

/// The addresses that have connections.
#[derive(Default)]
pub(crate) struct Peers {
    of: Mutex<HashMap<ClientKey, Of>>,
    /// Bytes of small answers that the clients of all addresses have not read.
    unread_bytes: AtomicUsize,
}

/// The connections of one address.
#[derive(Default)]
struct Of {
    connections: usize,
    address: Arc<Address>,
}

/// What the connections of one address have in common.
#[derive(Default)]
struct Address {
    /// Connections that have shown no valid key.
    keyless: AtomicUsize,
    /// Answers over HTTP/2 of which the client has not taken all that is ready: those of connections without a key, and
    /// those of connections with one.
    unread: [AtomicUsize; 2],
}

impl Peers {
    /// A connection from `ip`, which needs no key when `is_trusted`; `None` when its address has too many that have
    /// shown none.
    pub(crate) fn connect(self: &Arc<Self>, ip: IpAddr, is_trusted: bool) -> Option<Peer> {
        let key = ClientKey::of(ip);
        let mut peers = self.of.lock();
        let of = peers.entry(key).or_default();
        if !is_trusted {
            if of.address.keyless.load(Ordering::Relaxed) >= limit::CONNECTIONS_KEYLESS_MAX {
                return None;
            }
            of.address.keyless.fetch_add(1, Ordering::Relaxed);
        }
        of.connections += 1;
        let address = Arc::clone(&of.address);
        let (has_key, refused) = (AtomicBool::new(is_trusted), AtomicU32::new(0));
        Some(Peer { ip, key, address, has_key, refused, peers: Arc::clone(self) })
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
            self.address.keyless.fetch_sub(1, Ordering::Relaxed);
        }
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
        let mut peers = self.peers.of.lock();
        if let Some(of) = peers.get_mut(&self.key) {
            of.connections -= 1;
            if of.connections == 0 {
                peers.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const ONE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

    #[test]
    fn an_address_has_a_bound_for_connections_without_a_key() {
        let peers = Arc::new(Peers::default());
        let mut open: Vec<_> =
            (0..limit::CONNECTIONS_KEYLESS_MAX).map(|_| peers.connect(ONE, false).unwrap()).collect();
        assert!(peers.connect(ONE, false).is_none());
        assert!(peers.connect(ONE, true).is_some() && peers.connect(OTHER, false).is_some());
        open[0].show_key();
        open[0].show_key();
        open.push(peers.connect(ONE, false).unwrap());
        assert!(peers.connect(ONE, false).is_none());
        open.pop();
        assert!(peers.connect(ONE, false).is_some());
        drop(open);
        assert!(peers.of.lock().is_empty());
    }

    #[test]
    fn refusals_count_while_they_follow_each_other() {
        let peer = Arc::new(Peers::default()).connect(ONE, true).unwrap();
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
        let peers = Arc::new(Peers::default());
        let [one, same, other] = [ONE, ONE, OTHER].map(|ip| peers.connect(ip, false).unwrap());
        (0..limit::ANSWERS_UNREAD_MAX).for_each(|_| one.wait(false));
        assert!(same.reads_too_little() && !other.reads_too_little());
        one.show_key();
        assert!(!one.reads_too_little(), "those with a key count apart");
        one.take(false);
        assert!(!same.reads_too_little());
    }

    #[test]
    fn bytes_of_small_answers_count_over_all_addresses() {
        let peers = Arc::new(Peers::default());
        let [one, other, keyless] =
            [(ONE, true), (OTHER, true), (ONE, false)].map(|(ip, key)| peers.connect(ip, key).unwrap());
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
