//! Nonces of handshakes, so that one that was recorded cannot be used again.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use agentsvc_systems::peer::limits::{PEER_NONCE_MS, PEER_NONCES_MAX, PEER_NONCES_OF_ONE_MAX};

/// What became of a nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It is new, and remembered from now on.
    First,
    /// It was used before.
    Again,
    /// Too many are remembered: it cannot be said.
    Full,
}

/// The nonces of the last minutes.
#[derive(Default)]
pub(crate) struct Nonces {
    known: HashSet<Box<str>>,
    order: VecDeque<(Instant, Box<str>, Box<str>)>,
    /// How many each node has used.
    of_node: HashMap<Box<str>, usize>,
}

impl Nonces {
    /// A node that has proved to know the secret uses a nonce.
    pub(crate) fn see(&mut self, node: &str, nonce: &str, now: Instant) -> Seen {
        self.forget_old(now);
        if self.known.contains(nonce) {
            return Seen::Again;
        }
        // No node takes the places of all others.
        let of_node = self.of_node.get(node).copied().unwrap_or(0);
        if self.known.len() >= PEER_NONCES_MAX || of_node >= PEER_NONCES_OF_ONE_MAX {
            return Seen::Full;
        }
        self.known.insert(nonce.into());
        self.order.push_back((now, node.into(), nonce.into()));
        self.of_node.insert(node.into(), of_node + 1);
        Seen::First
    }

    fn forget_old(&mut self, now: Instant) {
        let time = Duration::from_millis(PEER_NONCE_MS);
        while let Some((at, node, nonce)) = self.order.front()
            && now.saturating_duration_since(*at) >= time
        {
            self.known.remove(nonce);
            if let Some(count) = self.of_node.get_mut(node) {
                *count -= 1;
                if *count == 0 {
                    self.of_node.remove(node);
                }
            }
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Nonces {
        /// As if their time were over.
        pub(crate) fn clear(&mut self) {
            *self = Self::default();
        }
    }

    #[test]
    fn a_nonce_counts_once_within_its_time() {
        let (mut nonces, start) = (Nonces::default(), Instant::now());
        assert_eq!(nonces.see("n", "a", start), Seen::First);
        let last = start + Duration::from_millis(PEER_NONCE_MS - 1);
        assert_eq!((nonces.see("m", "a", last), nonces.see("n", "b", last)), (Seen::Again, Seen::First));
        assert_eq!(nonces.see("m", "a", last + Duration::from_millis(1)), Seen::First);
        assert_eq!((nonces.known.len(), nonces.order.len(), nonces.of_node.len()), (2, 2, 2));
    }

    #[test]
    fn when_all_places_are_taken_none_is_forgotten() {
        let (mut nonces, now) = (Nonces::default(), Instant::now());
        for n in 0..PEER_NONCES_OF_ONE_MAX {
            assert_eq!(nonces.see("0", &n.to_string(), now), Seen::First);
        }
        assert_eq!(nonces.see("0", "x", now), Seen::Full, "one node does not take all places");
        for n in PEER_NONCES_OF_ONE_MAX..PEER_NONCES_MAX {
            assert_eq!(nonces.see(&(n / PEER_NONCES_OF_ONE_MAX).to_string(), &n.to_string(), now), Seen::First);
        }
        assert_eq!((nonces.see("m", "x", now), nonces.see("m", "0", now)), (Seen::Full, Seen::Again));
        let later = now + Duration::from_millis(PEER_NONCE_MS);
        assert_eq!(nonces.see("m", "x", later), Seen::First);
        assert_eq!((nonces.known.len(), nonces.of_node.len()), (1, 1));
    }
}
