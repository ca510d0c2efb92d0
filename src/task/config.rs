//! `[queue]`: how much runs at once, and the task queue.

use std::collections::BTreeMap;

use agentsvc_components::kernel::limit::{CLAIM_TIMEOUT_SECS_DEFAULT, EFFECTS_OUT_MAX, PROVIDER_CALLS_DEFAULT};

use crate::kernel::config::table;

/// Model calls out at once: the range of every key.
const CALLS: std::ops::RangeInclusive<u64> = 1..=EFFECTS_OUT_MAX as u64;

table! {
    /// `[queue]`.
    pub struct Queue {
        /// Seconds until an unfinished task claim expires, 1 to 2678400.
        claim_timeout_secs: u64 = CLAIM_TIMEOUT_SECS_DEFAULT => integer(1..=2_678_400).writable(),
        /// Concurrency limits. Other calls wait, shared fairly between agents.
        concurrency: Concurrency => table(),
    }
}

table! {
    /// `[queue.concurrency]`: what exceeds a bound waits, fairly over agents.
    pub struct Concurrency {
        /// Concurrent model calls per provider, 1 to 65536.
        provider_calls: u32 = PROVIDER_CALLS_DEFAULT => integer(CALLS).writable(),
        /// The same for individual providers, by name. Default: none.
        providers: BTreeMap<Box<str>, u64> => named_integers(CALLS).example("{ openai = 64 }"),
    }
}

impl Concurrency {
    /// Model calls that may be out at once for `provider`.
    pub fn calls_of(&self, provider: &str) -> u32 {
        let own = self.providers.get(provider).and_then(|calls| u32::try_from(*calls).ok());
        own.unwrap_or(self.provider_calls)
    }
}

#[cfg(test)]
mod tests {
    use super::Queue;
    use crate::kernel::config::{Error, Loaded, read_table};

    fn parse(text: &str) -> Result<Loaded<Queue>, Error> {
        read_table("queue", text)
    }

    #[test]
    fn a_provider_may_have_its_own_bound() {
        let text = "[queue.concurrency]\nprovider_calls = 8\nproviders.openai = 2\n";
        let concurrency = parse(text).unwrap().config.concurrency;
        assert_eq!((concurrency.calls_of("openai"), concurrency.calls_of("builtin")), (2, 8));
    }

    #[test]
    fn claims_have_their_time() {
        let queue = |text: &str| parse(text).map(|loaded| loaded.config.claim_timeout_secs);
        assert_eq!(queue("").unwrap(), 1_800);
        assert_eq!(queue("[queue]\nclaim_timeout_secs = 5\n").unwrap(), 5);
        let error = queue("[queue]\nclaim_timeout_secs = 0\n").unwrap_err().to_string();
        assert!(error.contains("queue.claim_timeout_secs: must be 1 to 2678400"), "{error}");
    }

    #[test]
    fn zero_and_other_types_are_refused() {
        let text = "[queue.concurrency]\nprovider_calls = 0\n[queue.concurrency.providers]\na = \"x\"\n";
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains("c:2:18: queue.concurrency.provider_calls: must be 1 to 65536"), "{error}");
        assert!(error.contains("c:4:5: queue.concurrency.providers.a: must be an integer from 1 to 65536"), "{error}");
    }
}
