//! Slows down nodes that guess the secret: each address, and all of them together.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use agentsvc_api::http::failures::{ClientKey, Failures};
use agentsvc_systems::peer::limits::{PEER_ADDRESSES_KNOWN_MAX, PEER_WRONG_SECRETS_MAX};
use parking_lot::Mutex;

use super::handshake::{Refused, TOO_MANY};

/// What all addresses are counted in.
const PERIOD: Duration = Duration::from_secs(60);

/// The wrong secrets that came.
#[derive(Default)]
pub(crate) struct Guesses {
    failures: Failures,
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    since: Option<Instant>,
    wrong: u32,
    /// Addresses from which the secret came, the oldest first.
    known: VecDeque<ClientKey>,
}

impl Guesses {
    /// May a secret from this address be looked at now?
    ///
    /// # Errors
    /// There were too many wrong ones.
    pub(crate) fn check(&self, from: IpAddr, now: Instant) -> Result<(), Refused> {
        let from = ClientKey::of(from);
        if let Some(wait) = self.failures.wait(from, now) {
            let secs = wait.as_millis().div_ceil(1_000);
            let text = format!("too many wrong secrets from this address; wait {secs} seconds, then try again");
            return Err(Refused::new(TOO_MANY, text));
        }
        let all = self.all.lock();
        let is_over = all.since.is_none_or(|since| now.duration_since(since) >= PERIOD);
        if is_over || all.wrong < PEER_WRONG_SECRETS_MAX || all.known.contains(&from) {
            return Ok(());
        }
        Err(Refused::new(TOO_MANY, "too many wrong secrets from all addresses; try again in a minute"))
    }

    /// A wrong secret came.
    pub(crate) fn wrong(&self, from: IpAddr, now: Instant) {
        self.failures.add(ClientKey::of(from), now);
        let mut all = self.all.lock();
        if all.since.is_none_or(|since| now.duration_since(since) >= PERIOD) {
            (all.since, all.wrong) = (Some(now), 0);
        }
        all.wrong = all.wrong.saturating_add(1);
    }

    /// The right one came.
    pub(crate) fn right(&self, from: IpAddr) {
        let from = ClientKey::of(from);
        let known = &mut self.all.lock().known;
        if known.contains(&from) {
            return;
        }
        if known.len() >= PEER_ADDRESSES_KNOWN_MAX {
            known.pop_front();
        }
        known.push_back(from);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use agentsvc_components::kernel::limit;

    use super::*;

    fn address(n: u32) -> IpAddr {
        Ipv4Addr::from_bits((10 << 24) + n).into()
    }

    #[test]
    fn one_address_waits_and_others_do_not() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        for _ in 0..limit::AUTH_FREE_TRIES {
            assert!(guesses.check(address(1), now).is_ok());
            guesses.wrong(address(1), now);
        }
        let refused = guesses.check(address(1), now).unwrap_err();
        assert!(refused.code == TOO_MANY && refused.reason.contains("wait 1 seconds"), "{refused}");
        assert!(guesses.check(address(2), now).is_ok());
        assert!(guesses.check(address(1), now + Duration::from_secs(1)).is_ok());
    }

    #[test]
    fn many_addresses_wait_together_and_peers_that_connected_do_not() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        guesses.right(address(0));
        (1..=PEER_WRONG_SECRETS_MAX).for_each(|n| guesses.wrong(address(n), now));
        assert!(guesses.check(address(1_000), now).unwrap_err().reason.contains("all addresses"));
        assert!(guesses.check(address(0), now).is_ok());
        assert!(guesses.check(address(1_000), now + PERIOD).is_ok());
        (0..2 * PEER_ADDRESSES_KNOWN_MAX as u32).for_each(|n| guesses.right(address(5_000 + n)));
        assert_eq!(guesses.all.lock().known.len(), PEER_ADDRESSES_KNOWN_MAX);
    }
}
