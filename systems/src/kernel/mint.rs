//! Where ids come from: UUID v7 of the world's time and seeded randomness, strictly increasing.

use bevy_ecs::prelude::Resource;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use uuid::{Builder, Uuid};

use agentsvc_components::{LogId, Timestamp};

/// Mints durable ids. Ids of one process increase strictly, so that id order is the order of creation.
#[derive(Resource)]
pub struct Mint {
    rng: ChaCha8Rng,
    last_ms: u64,
    counter: u16,
    next_log: u64,
    hash_key: u64,
}

impl Mint {
    /// A mint whose randomness comes from `seed` alone.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        let mut rng = ChaCha8Rng::from_seed(seed);
        let hash_key = rng.next_u64();
        Self { rng, last_ms: 0, counter: 0, next_log: 1, hash_key }
    }

    /// A new UUID v7 that sorts after every one minted before it.
    pub fn uuid(&mut self, now: Timestamp) -> Uuid {
        // RFC 9562, method 1: a counter in the 12 bits behind the millisecond keeps one millisecond's ids in
        // order; when it runs over, or the clock stands still or goes back, the last millisecond is counted on.
        let ms = u64::try_from(now.0).unwrap_or(0);
        if ms > self.last_ms {
            (self.last_ms, self.counter) = (ms, 0);
        } else if self.counter < 0x0fff {
            self.counter += 1;
        } else {
            (self.last_ms, self.counter) = (self.last_ms + 1, 0);
        }
        let mut random = [0; 10];
        self.rng.fill_bytes(&mut random);
        [random[0], random[1]] = self.counter.to_be_bytes();
        Builder::from_unix_timestamp_millis(self.last_ms, &random).into_uuid()
    }

    /// A number below `bound`, by chance.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.rng.next_u64() % bound.max(1)
    }

    /// A log that no session has had since the daemon started, and that no stored one has.
    pub fn log(&mut self) -> LogId {
        let log = LogId(self.next_log);
        self.next_log += 1;
        log
    }

    /// The log that is given out next.
    pub(crate) const fn next_log(&self) -> u64 {
        self.next_log
    }

    /// Logs up to and including `log` are taken (restore).
    pub fn reserve_log(&mut self, log: LogId) {
        self.next_log = self.next_log.max(log.0.saturating_add(1));
    }

    /// Keys the hash indexes, so that nobody can choose ids that collide.
    #[must_use]
    pub const fn hash_key(&self) -> u64 {
        self.hash_key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_increase_strictly_within_a_millisecond_and_when_the_clock_goes_back() {
        let mut mint = Mint::new([7; 32]);
        let mut last = Uuid::nil();
        for i in 0..20_000 {
            let id = mint.uuid(Timestamp(1_000_000 - i % 7));
            assert!(id > last, "{id} after {last}");
            assert_eq!(id.get_version_num(), 7);
            last = id;
        }
    }

    #[test]
    fn the_same_seed_mints_the_same_ids() {
        let (mut a, mut b) = (Mint::new([1; 32]), Mint::new([1; 32]));
        assert_eq!(a.uuid(Timestamp(5)), b.uuid(Timestamp(5)));
        assert_eq!(a.hash_key(), b.hash_key());
    }
}
