//! Nonces of handshakes, so that one that was recorded cannot be used again.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use agentsvc_systems::peer::limits::{PEER_NONCE_MS, PEER_NONCES_MAX};

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
    order: VecDeque<(Instant, Box<str>)>,
}

impl Nonces {
    /// A nonce whose sender has proved to know the secret is used.
    pub(crate) fn see(&mut self, nonce: &str, now: Instant) -> Seen {
        let time = Duration::from_millis(PEER_NONCE_MS);
        while let Some((at, _)) = self.order.front()
            && now.saturating_duration_since(*at) >= time
        {
            if let Some((_, gone)) = self.order.pop_front() {
                self.known.remove(&gone);
            }
        }
        if self.known.contains(nonce) {
            return Seen::Again;
        }
        if self.known.len() >= PEER_NONCES_MAX {
            return Seen::Full;
        }
        self.known.insert(nonce.into());
        self.order.push_back((now, nonce.into()));
        Seen::First
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_counts_once_within_its_time() {
        let (mut nonces, start) = (Nonces::default(), Instant::now());
        assert_eq!(nonces.see("a", start), Seen::First);
        let last = start + Duration::from_millis(PEER_NONCE_MS - 1);
        assert_eq!((nonces.see("a", last), nonces.see("b", last)), (Seen::Again, Seen::First));
        assert_eq!(nonces.see("a", last + Duration::from_millis(1)), Seen::First);
        assert_eq!((nonces.known.len(), nonces.order.len()), (2, 2));
    }

    #[test]
    fn when_all_places_are_taken_none_is_forgotten() {
        let (mut nonces, now) = (Nonces::default(), Instant::now());
        for n in 0..PEER_NONCES_MAX {
            assert_eq!(nonces.see(&n.to_string(), now), Seen::First);
        }
        assert_eq!((nonces.see("x", now), nonces.see("0", now)), (Seen::Full, Seen::Again));
    }
}
