//! The breaker of one provider.
//!
//! | state | a call | ends well | fails |
//! |---|---|---|---|
//! | closed | passes | forgets the failures | one more; at [`FAILURES_MAX`] in a row it opens |
//! | open | is refused until its time is over; then it is the probe | closes | (begun before: nothing) |
//! | half open | is refused while the probe is out | closes | the probe's: opens for twice as long |
//!
//! Only what says that the provider is ill is a failure: no connection, no answer in time, 5xx, answers that break off.

use agentsvc_components::turn::outcome::FailureCode;
use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row that open it: more than one call makes with its retries.
pub(super) const FAILURES_MAX: u32 = 5;
/// How long it is open the first time.
pub(super) const OPEN_FIRST: Duration = Duration::from_secs(5);
/// How long it is open at most.
pub(super) const OPEN_MAX: Duration = Duration::from_secs(300);
/// A failure that is older than this is not one in a row with the next.
const FORGET_AFTER: Duration = Duration::from_secs(600);

agentsvc_components::enum_words! {
    /// What it does with calls.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum BreakerState [as_str] {
        /// They pass.
        #[default]
        Closed = "closed",
        /// One is out to find out whether the provider is well again; the others are refused.
        HalfOpen = "half_open",
        /// They are refused.
        Open = "open",
    }
}

/// The breaker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    state: BreakerState,
    /// Failures in a row.
    failures: u32,
    /// Times that it opened in a row.
    opens: u32,
    /// When a probe may be made; of an open one.
    until: Option<Instant>,
    /// The last failure, and when.
    failed: Option<(FailureCode, Instant)>,
}

impl Breaker {
    /// How long a call would be refused, and with which failure; `None` when it may pass.
    pub(super) fn refuses(&self, now: Instant) -> Option<(Duration, FailureCode)> {
        let code = self.failed.map_or(FailureCode::ProviderError, |(code, _)| code);
        match self.state {
            BreakerState::Closed => None,
            BreakerState::HalfOpen => Some((Duration::from_secs(1), code)),
            BreakerState::Open => {
                let left = self.until?.saturating_duration_since(now);
                (!left.is_zero()).then_some((left, code))
            }
        }
    }

    /// A call passes that is not refused; true when it is the probe.
    pub(super) fn pass(&mut self) -> bool {
        let is_probe = self.state == BreakerState::Open;
        if is_probe {
            self.state = BreakerState::HalfOpen;
        }
        is_probe
    }

    /// The provider answered, whatever it said.
    pub(super) fn succeed(&mut self) {
        *self = Self { failed: self.failed, ..Self::default() };
    }

    /// A call failed; true when it opens by that.
    pub(super) fn fail(&mut self, code: FailureCode, is_probe: bool, now: Instant) -> bool {
        let last = self.failed.replace((code, now));
        match self.state {
            BreakerState::Closed => {
                let is_old = last.is_none_or(|(_, at)| now.saturating_duration_since(at) > FORGET_AFTER);
                self.failures = if is_old { 1 } else { self.failures.saturating_add(1) };
                if self.failures < FAILURES_MAX {
                    return false;
                }
            }
            BreakerState::HalfOpen if is_probe => self.failures = self.failures.saturating_add(1),
            // Begun before it opened: nothing new.
            BreakerState::HalfOpen | BreakerState::Open => return false,
        }
        let wait = OPEN_FIRST.saturating_mul(1 << self.opens.min(16)).min(OPEN_MAX);
        self.opens = self.opens.saturating_add(1);
        self.state = BreakerState::Open;
        self.until = Some(now + wait);
        true
    }

    /// A call ended without a word of the provider: it was stopped. If it was the probe, the next call is.
    pub(super) fn give_up(&mut self, is_probe: bool, now: Instant) {
        if is_probe && self.state == BreakerState::HalfOpen {
            self.state = BreakerState::Open;
            self.until = Some(now);
        }
    }

    /// What it does with calls now: an open one whose time is over waits for its probe.
    pub(super) fn state(&self, now: Instant) -> BreakerState {
        match self.state {
            BreakerState::Open if self.refuses(now).is_none() => BreakerState::HalfOpen,
            state => state,
        }
    }

    /// Failures in a row.
    pub(super) const fn failures(&self) -> u32 {
        self.failures
    }

    /// The last failure there was.
    pub(super) fn last_failure(&self) -> Option<FailureCode> {
        self.failed.map(|(code, _)| code)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DOWN: FailureCode = FailureCode::ProviderError;

    fn opened(now: Instant) -> Breaker {
        let mut breaker = Breaker::default();
        let opened: Vec<bool> = (0..FAILURES_MAX).map(|_| breaker.fail(DOWN, false, now)).collect();
        assert_eq!(opened.iter().filter(|opened| **opened).count(), 1);
        breaker
    }

    #[test]
    fn failures_in_a_row_open_it() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        for _ in 1..FAILURES_MAX {
            assert!(!breaker.fail(DOWN, false, now));
        }
        breaker.succeed();
        assert!(!breaker.fail(FailureCode::ProviderTimeout, false, now));
        assert_eq!((breaker.refuses(now), breaker.failures()), (None, 1));
        let open = opened(now);
        assert_eq!(open.refuses(now), Some((OPEN_FIRST, DOWN)));
        assert_eq!((open.state(now), open.state(now + OPEN_FIRST)), (BreakerState::Open, BreakerState::HalfOpen));
    }

    #[test]
    fn old_failures_are_forgotten() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        for at in 0..20 {
            assert!(!breaker.fail(DOWN, false, now + (FORGET_AFTER + Duration::from_secs(1)) * at));
        }
    }

    #[test]
    fn one_probe_finds_out() {
        let now = Instant::now();
        let mut breaker = opened(now);
        let later = now + OPEN_FIRST;
        assert_eq!(breaker.refuses(later), None);
        assert!(breaker.pass());
        assert!(breaker.refuses(later).is_some(), "one at a time");
        // A call from before fails meanwhile.
        assert!(!breaker.fail(DOWN, false, later));
        assert!(breaker.fail(DOWN, true, later));
        assert_eq!(breaker.refuses(later), Some((OPEN_FIRST * 2, DOWN)));
        let again = later + OPEN_FIRST * 2;
        assert!(breaker.pass());
        breaker.give_up(true, again);
        assert_eq!(breaker.refuses(again), None, "a probe that was stopped says nothing");
        assert!(breaker.pass());
        breaker.succeed();
        assert_eq!((breaker.refuses(again), breaker.pass()), (None, false));
        assert_eq!(breaker.last_failure(), Some(DOWN));
    }

    proptest! {
        #[test]
        fn it_never_stays_open_for_long(steps in proptest::collection::vec((0_u8..4, 0_u64..400), 1..200)) {
            let mut now = Instant::now();
            let mut breaker = Breaker::default();
            let mut probe = false;
            for (step, secs) in steps {
                now += Duration::from_secs(secs);
                match step {
                    0 if breaker.refuses(now).is_none() => probe |= breaker.pass(),
                    1 => { breaker.succeed(); probe = false; }
                    2 => { breaker.fail(DOWN, std::mem::take(&mut probe), now); }
                    3 => breaker.give_up(std::mem::take(&mut probe), now),
                    _ => {}
                }
                if let Some((left, _)) = breaker.refuses(now) {
                    prop_assert!(left <= OPEN_MAX);
                    prop_assert!(probe || breaker.refuses(now + OPEN_MAX).is_none());
                }
            }
        }
    }
}
