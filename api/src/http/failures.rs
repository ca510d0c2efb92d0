//! Slows down clients that send wrong keys or secrets: each further one makes the next wait longer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agentsvc_components::kernel::limit;

use hyper::StatusCode;
use parking_lot::Mutex;

use crate::http::error::Error;
use crate::http::error_codes;
pub use crate::http::rate::ClientKey;

/// What clients have too many of.
const KEYS: &str = "wrong API keys";

/// The wrong keys of each client.
#[derive(Default)]
pub struct Failures {
    clients: Mutex<HashMap<ClientKey, Tries>>,
    /// How many clients there are; read without the lock.
    count: AtomicUsize,
}

/// The wrong keys of one client.
#[derive(Clone, Copy)]
struct Tries {
    wrong: u32,
    /// No key is looked at before.
    until: Instant,
}

/// A secret that counts as wrong while it is looked at.
pub(crate) struct Guess {
    /// Where it is counted.
    key: ClientKey,
    /// Until when the client had to wait before it, and has to because of it.
    waits: (Instant, Instant),
}

impl Tries {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.until) > Duration::from_secs(limit::AUTH_FORGOTTEN_SECS)
    }
}

/// The refusal of a client that has to wait because of these, such as wrong API keys.
fn slowed(wait: Duration, what: &str) -> Error {
    let secs = u32::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX);
    let text = format!("too many {what} from this address; wait, then try again");
    Error::new(StatusCode::TOO_MANY_REQUESTS, text).code(error_codes::AUTH_SLOWED).retry_after(secs)
}

impl Failures {
    /// How long the client has to wait until a key of it is looked at; `None` when it need not wait.
    pub fn wait(&self, client: ClientKey, now: Instant) -> Option<Duration> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        Self::wait_in(&self.clients.lock(), client, now)
    }

    fn wait_in(clients: &HashMap<ClientKey, Tries>, client: ClientKey, now: Instant) -> Option<Duration> {
        let tries = clients.get(&Self::key_of(clients, client))?;
        Some(tries.until.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
    }

    /// May the client try a key now?
    ///
    /// # Errors
    /// 429 with `Retry-After`.
    pub(crate) fn check(&self, client: ClientKey, now: Instant) -> Result<(), Error> {
        self.check_for(client, now, KEYS)
    }

    /// May the client try something else than a key now, such as a sign-in?
    ///
    /// # Errors
    /// 429 with `Retry-After`.
    pub(crate) fn check_for(&self, client: ClientKey, now: Instant, what: &str) -> Result<(), Error> {
        self.wait(client, now).map_or(Ok(()), |wait| Err(slowed(wait, what)))
    }

    /// Lets the client try a secret that takes time to look at. It counts as wrong until [`undo`](Self::undo) takes that back: of
    /// those that come at the same time, no more are looked at than of those that come one after the other.
    ///
    /// # Errors
    /// 429 with `Retry-After`.
    pub(crate) fn begin(&self, client: ClientKey, now: Instant) -> Result<Guess, Error> {
        let mut clients = self.clients.lock();
        match Self::wait_in(&clients, client, now) {
            Some(wait) => Err(slowed(wait, KEYS)),
            None => Ok(self.add_in(&mut clients, client, now)),
        }
    }

    /// The secret was right, or was not looked at.
    pub(crate) fn undo(&self, guess: &Guess) {
        let mut clients = self.clients.lock();
        let Some(tries) = clients.get_mut(&guess.key) else { return };
        tries.wrong = tries.wrong.saturating_sub(1);
        let (before, after) = guess.waits;
        // Those that came meanwhile keep their wait.
        if tries.until == after || tries.wrong < limit::AUTH_FREE_TRIES {
            tries.until = before;
        }
        if tries.wrong == 0 {
            clients.remove(&guess.key);
            self.count.store(clients.len(), Ordering::Relaxed);
        }
    }

    /// The client sent a wrong key.
    pub fn add(&self, client: ClientKey, now: Instant) {
        self.add_in(&mut self.clients.lock(), client, now);
    }

    fn add_in(&self, clients: &mut HashMap<ClientKey, Tries>, client: ClientKey, now: Instant) -> Guess {
        if clients.len() >= limit::AUTH_SLOWED_MAX {
            clients.retain(|_, tries| !tries.is_over(now));
        }
        let key = Self::key_of(clients, client);
        let tries = clients.entry(key).or_insert(Tries { wrong: 0, until: now });
        if tries.is_over(now) {
            tries.wrong = 0;
        }
        let before = tries.until;
        tries.wrong = tries.wrong.saturating_add(1);
        let doublings = tries.wrong.checked_sub(limit::AUTH_FREE_TRIES);
        let secs = doublings.map_or(0, |doublings| 1_u64.checked_shl(doublings).unwrap_or(u64::MAX));
        tries.until = now + Duration::from_secs(secs.min(limit::AUTH_WAIT_SECS_MAX));
        let waits = (before, tries.until);
        self.count.store(clients.len(), Ordering::Relaxed);
        Guess { key, waits }
    }

    /// Forgets clients that have sent no wrong key for long.
    pub(crate) fn sweep(&self, now: Instant) {
        let mut clients = self.clients.lock();
        clients.retain(|_, tries| !tries.is_over(now));
        self.count.store(clients.len(), Ordering::Relaxed);
    }

    /// Where the tries of a client are counted: with those of others, while there are too many.
    fn key_of(clients: &HashMap<ClientKey, Tries>, client: ClientKey) -> ClientKey {
        let is_full = clients.len() >= limit::AUTH_SLOWED_MAX;
        if is_full && !clients.contains_key(&client) { ClientKey::Shared(0) } else { client }
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::RETRY_AFTER;

    use super::*;

    const CLIENT: ClientKey = ClientKey::V4(1);

    #[test]
    fn each_wrong_key_makes_the_next_wait_longer_up_to_a_bound() {
        let failures = Failures::default();
        let mut now = Instant::now();
        for _ in 1..limit::AUTH_FREE_TRIES {
            failures.add(CLIENT, now);
            assert!(failures.check(CLIENT, now).is_ok());
        }
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            failures.add(CLIENT, now);
            let refused = failures.check(CLIENT, now).unwrap_err().into_response();
            assert_eq!(refused.status(), 429);
            assert_eq!(refused.headers()[RETRY_AFTER], wait.to_string());
            assert!(failures.check(ClientKey::V4(2), now).is_ok(), "another client");
            now += Duration::from_secs(wait);
            assert!(failures.check(CLIENT, now).is_ok());
        }
        now += Duration::from_secs(limit::AUTH_FORGOTTEN_SECS + 1);
        failures.add(CLIENT, now);
        assert!(failures.check(CLIENT, now).is_ok(), "what is long ago is forgotten");
        failures.sweep(now + Duration::from_secs(limit::AUTH_FORGOTTEN_SECS + 1));
        assert_eq!(failures.count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn secrets_that_are_looked_at_count_as_wrong_until_they_are_right() {
        let (failures, now) = (Failures::default(), Instant::now());
        let mut begun: Vec<_> = (0..limit::AUTH_FREE_TRIES).map(|_| failures.begin(CLIENT, now).unwrap()).collect();
        assert!(failures.begin(CLIENT, now).is_err(), "as many are looked at as are free");
        assert!(failures.begin(ClientKey::V4(2), now).is_ok(), "another client");
        failures.undo(&begun.remove(0));
        begun.push(failures.begin(CLIENT, now).unwrap());
        assert!(failures.begin(CLIENT, now).is_err());
        begun.iter().for_each(|guess| failures.undo(guess));
        assert!(failures.clients.lock().keys().eq([&ClientKey::V4(2)]), "right ones leave nothing behind");
    }

    #[test]
    fn a_right_secret_takes_back_its_own_wait_alone() {
        let (failures, now) = (Failures::default(), Instant::now());
        (0..limit::AUTH_FREE_TRIES).for_each(|_| failures.add(CLIENT, now));
        let wait = |secs| failures.wait(CLIENT, now + Duration::from_secs(secs));
        assert!(failures.begin(CLIENT, now).is_err());
        let right = failures.begin(CLIENT, now + Duration::from_secs(1)).unwrap();
        assert_eq!(wait(1), Some(Duration::from_secs(2)));
        failures.undo(&right);
        assert_eq!(wait(1), None, "it costs no wait");
        // A wrong one comes while a right one is looked at for long.
        let right = failures.begin(CLIENT, now + Duration::from_secs(1)).unwrap();
        failures.add(CLIENT, now + Duration::from_secs(3));
        failures.undo(&right);
        assert_eq!(wait(3), Some(Duration::from_secs(4)), "the wrong one still counts");
        assert_eq!(failures.clients.lock()[&CLIENT].wrong, limit::AUTH_FREE_TRIES + 1);
    }

    #[test]
    fn a_crowd_shares_one_place() {
        let failures = Failures::default();
        let now = Instant::now();
        let count = u32::try_from(limit::AUTH_SLOWED_MAX).unwrap() + limit::AUTH_FREE_TRIES;
        (0..count).for_each(|client| failures.add(ClientKey::V4(client), now));
        assert_eq!(failures.count.load(Ordering::Relaxed), limit::AUTH_SLOWED_MAX + 1);
        assert!(failures.check(ClientKey::V4(count), now).is_err() && failures.check(CLIENT, now).is_ok());
    }
}
