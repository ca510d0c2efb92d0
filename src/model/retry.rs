//! When a failed try is made again: exponential backoff with full jitter, bounded in tries and in time.
//!
//! | the try failed with | then |
//! |---|---|
//! | 408, 429, 5xx, no connection | again after the wait below |
//! | anything else | no other try |
//! | anything, after a piece of the answer was given out | no other try: the reader has seen it |
//!
//! The wait before try `n + 1` is uniform in `0 ..= min(wait_max, wait_base * 2^(n - 1))`, and at least what the
//! provider asked for in `Retry-After`. A wait that would pass `total_max` is not begun.

use std::time::Duration;

use super::error::CallError;

/// The bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries in all, the first included; `[retry] max_retries` of 3 means 4.
    pub attempts_max: u32,
    /// The longest first wait.
    pub wait_base: Duration,
    /// The longest wait of the backoff; `Retry-After` may ask for more.
    pub wait_max: Duration,
    /// From the start of the first try to the start of the last.
    pub total_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 4,
            wait_base: Duration::from_millis(500),
            wait_max: Duration::from_secs(20),
            total_max: Duration::from_secs(120),
        }
    }
}

/// How long to wait before the next try; `None` when there is to be none.
///
/// `failed` counts the tries so far, `elapsed` runs since the start of the first, `jitter` is uniform in `0.0..=1.0`.
pub fn plan(
    policy: &RetryPolicy,
    error: &CallError,
    failed: u32,
    elapsed: Duration,
    given_out: bool,
    jitter: f64,
) -> Option<Duration> {
    if !error.retryable || given_out || failed >= policy.attempts_max {
        return None;
    }
    let doublings = failed.saturating_sub(1).min(31);
    let ceiling = policy.wait_base.saturating_mul(1 << doublings).min(policy.wait_max);
    let wait = ceiling.mul_f64(jitter.clamp(0.0, 1.0)).max(error.retry_after.unwrap_or_default());
    (elapsed.saturating_add(wait) <= policy.total_max).then_some(wait)
}

#[cfg(test)]
mod tests {
    use agentsvc_components::turn::outcome::FailureCode;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::{RetryPolicy, plan};
    use crate::model::error::CallError;

    const POLICY: RetryPolicy = RetryPolicy {
        attempts_max: 4,
        wait_base: Duration::from_millis(100),
        wait_max: Duration::from_millis(250),
        total_max: Duration::from_secs(10),
    };

    fn passing() -> CallError {
        CallError::passing(FailureCode::ProviderError, "down")
    }

    fn wait_ms(failed: u32, jitter: f64) -> Option<u128> {
        plan(&POLICY, &passing(), failed, Duration::ZERO, false, jitter).map(|wait| wait.as_millis())
    }

    #[test]
    fn waits_double_up_to_their_bound_and_tries_end() {
        assert_eq!([1, 2, 3, 4].map(|failed| wait_ms(failed, 1.0)), [Some(100), Some(200), Some(250), None]);
        assert_eq!([1, 2, 3].map(|failed| wait_ms(failed, 0.5)), [Some(50), Some(100), Some(125)]);
        assert_eq!(wait_ms(1, 0.0), Some(0));
    }

    #[test]
    fn no_other_try_when_it_is_pointless_or_seen() {
        let last = CallError::last(FailureCode::ProviderAuth, "no");
        assert_eq!(plan(&POLICY, &last, 1, Duration::ZERO, false, 1.0), None);
        assert_eq!(plan(&POLICY, &passing(), 1, Duration::ZERO, true, 1.0), None);
        assert_eq!(plan(&POLICY, &passing(), 1, Duration::from_secs(10), false, 1.0), None);
    }

    #[test]
    fn the_provider_may_ask_for_more_but_not_beyond_the_total() {
        let asks = |secs| CallError { retry_after: Some(Duration::from_secs(secs)), ..passing() };
        let after = |secs| plan(&POLICY, &asks(secs), 1, Duration::from_secs(1), false, 1.0);
        assert_eq!(after(3), Some(Duration::from_secs(3)));
        assert_eq!(after(0), Some(Duration::from_millis(100)));
        assert_eq!(after(10), None);
    }

    proptest! {
        /// A provider that always fails: the run in virtual time stays within the bounds.
        #[test]
        fn a_whole_run_stays_within_its_bounds(
            jitters in proptest::collection::vec(0.0_f64..=1.0, 64),
            asked in proptest::collection::vec(proptest::option::of(0_u64..8_000), 64),
            try_ms in 0_u64..3_000,
        ) {
            let (mut elapsed, mut tries) = (Duration::ZERO, 0);
            let mut last_start = Duration::ZERO;
            for (jitter, asked) in jitters.into_iter().zip(asked) {
                last_start = elapsed;
                tries += 1;
                elapsed += Duration::from_millis(try_ms);
                let error = CallError { retry_after: asked.map(Duration::from_millis), ..passing() };
                let Some(wait) = plan(&POLICY, &error, tries, elapsed, false, jitter) else { break };
                prop_assert!(wait >= error.retry_after.unwrap_or_default());
                elapsed += wait;
            }
            prop_assert!(tries <= POLICY.attempts_max);
            prop_assert!(last_start <= POLICY.total_max);
        }
    }
}
