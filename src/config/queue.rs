//! `[queue]`: how much runs at once, and the task queue.

use std::collections::BTreeMap;

use agentsvc_components::kernel::limit::{CLAIM_TIMEOUT_SECS_DEFAULT, EFFECTS_OUT_MAX, PROVIDER_CALLS_DEFAULT};
use serde::Serialize;

use super::key::{Key, Table};
use super::reader::Reader;

/// Model calls out at once: the range of every key.
const CALLS: std::ops::RangeInclusive<u64> = 1..=EFFECTS_OUT_MAX as u64;

/// Seconds that a claim of a task may stand: to a month.
const CLAIM_SECS: std::ops::RangeInclusive<u64> = 1..=2_678_400;

/// `[queue]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Queue {
    /// Seconds after which a claimed task that nobody ended waits again.
    pub claim_timeout_secs: u64,
    /// `[queue.concurrency]`.
    pub concurrency: Concurrency,
}

impl Default for Queue {
    fn default() -> Self {
        Self { claim_timeout_secs: CLAIM_TIMEOUT_SECS_DEFAULT, concurrency: Concurrency::default() }
    }
}

impl Table for Queue {
    const KEYS: &'static [Key] = &[
        Key::integer(
            "claim_timeout_secs",
            CLAIM_SECS,
            "1800",
            "Seconds after which a claimed task that nobody ended waits again, 1 to 2678400.",
        )
        .writable(),
        Key::table::<Concurrency>("concurrency", "How much runs at once; the rest waits, fairly over agents."),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let claim_timeout_secs = reader.integer("claim_timeout_secs");
        Self {
            claim_timeout_secs: claim_timeout_secs.unwrap_or(CLAIM_TIMEOUT_SECS_DEFAULT),
            concurrency: reader.table("concurrency"),
        }
    }
}

/// `[queue.concurrency]`: what exceeds a bound waits, fairly over agents.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Concurrency {
    /// Model calls out at once for one provider.
    pub provider_calls: u32,
    /// The same for single providers, by name.
    pub providers: BTreeMap<Box<str>, u64>,
}

impl Concurrency {
    /// Model calls that may be out at once for `provider`.
    #[must_use]
    pub fn calls_of(&self, provider: &str) -> u32 {
        let own = self.providers.get(provider).and_then(|calls| u32::try_from(*calls).ok());
        own.unwrap_or(self.provider_calls)
    }
}

impl Default for Concurrency {
    fn default() -> Self {
        Self { provider_calls: PROVIDER_CALLS_DEFAULT, providers: BTreeMap::new() }
    }
}

impl Table for Concurrency {
    const KEYS: &'static [Key] = &[
        Key::integer("provider_calls", CALLS, "256", "Model calls out at once for each provider, 1 to 65536.")
            .writable(),
        Key::named_integers(
            "providers",
            CALLS,
            "{ openai = 64 }",
            "The same for single providers, by name. Default: none.",
        )
        .example(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let default = Self::default();
        Self {
            provider_calls: reader.integer("provider_calls").unwrap_or(default.provider_calls),
            providers: reader.named_integers("providers"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::parse;

    #[test]
    fn a_provider_may_have_its_own_bound() {
        let text = "[queue.concurrency]\nprovider_calls = 8\nproviders.openai = 2\n";
        let concurrency = parse(text, Path::new("c")).unwrap().config.queue.concurrency;
        assert_eq!((concurrency.calls_of("openai"), concurrency.calls_of("builtin")), (2, 8));
    }

    #[test]
    fn claims_have_their_time() {
        let queue = |text: &str| parse(text, Path::new("c")).map(|loaded| loaded.config.queue.claim_timeout_secs);
        assert_eq!(queue("").unwrap(), 1_800);
        assert_eq!(queue("[queue]\nclaim_timeout_secs = 5\n").unwrap(), 5);
        let error = queue("[queue]\nclaim_timeout_secs = 0\n").unwrap_err().to_string();
        assert!(error.contains("queue.claim_timeout_secs: must be 1 to 2678400"), "{error}");
    }

    #[test]
    fn zero_and_other_types_are_refused() {
        let text = "[queue.concurrency]\nprovider_calls = 0\n[queue.concurrency.providers]\na = \"x\"\n";
        let error = parse(text, Path::new("c")).unwrap_err().to_string();
        assert!(error.contains("c:2:18: queue.concurrency.provider_calls: must be 1 to 65536"), "{error}");
        assert!(error.contains("c:4:5: queue.concurrency.providers.a: must be an integer, 1 to 65536"), "{error}");
    }
}
