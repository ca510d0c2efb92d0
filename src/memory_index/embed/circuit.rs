//! Leaves a provider alone that fails: the longer, the more often it has failed in a row.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The pause after the first failure. Each further one doubles it.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest pause, also of those that a provider asks for.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// The pause after answers that were paid and could not be used. Each further one doubles it.
const USELESS_FIRST: Duration = Duration::from_secs(60);
/// The longest pause after such an answer.
const USELESS_MAX: Duration = Duration::from_secs(4 * 3_600);

/// Closed while the provider answers.
#[derive(Debug, Default)]
pub(super) struct Circuit(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// Answers in a row that could not be used.
    useless: u32,
    until: Option<Instant>,
    why: String,
}

impl Circuit {
    /// How long the provider is still to be left alone; `None` when it may be asked.
    pub(super) fn pause(&self, now: Instant) -> Option<Duration> {
        self.0.lock().until.map(|until| until.saturating_duration_since(now)).filter(|pause| !pause.is_zero())
    }

    /// Why the provider was left alone the last time; `None` when it answered since.
    pub(super) fn why(&self) -> Option<String> {
        let state = self.0.lock();
        state.until.map(|_| state.why.clone())
    }

    /// It answered. Whether that is of use is not known yet.
    pub(super) fn answered(&self) {
        let mut state = self.0.lock();
        *state = State { useless: state.useless, ..State::default() };
    }

    /// What it answered was stored.
    pub(super) fn stored(&self) {
        self.0.lock().useless = 0;
    }

    /// What it answered cannot be used, and was paid all the same: it is tried again ever more rarely.
    pub(super) fn useless(&self, now: Instant, why: &str) {
        let mut state = self.0.lock();
        if state.until.is_none_or(|until| until <= now) {
            state.useless += 1;
        }
        let pause = USELESS_FIRST.saturating_mul(1 << state.useless.saturating_sub(1).min(16)).min(USELESS_MAX);
        state.until = state.until.max(Some(now + pause));
        why.clone_into(&mut state.why);
    }

    /// It failed; it, or a budget, asks to be left alone for `least`.
    pub(super) fn failed(&self, now: Instant, least: Option<Duration>, why: &str) {
        let mut state = self.0.lock();
        // Calls that were out together count once.
        if state.until.is_none_or(|until| until <= now) {
            state.failures += 1;
        }
        let backoff = PAUSE_FIRST * (1 << (state.failures.saturating_sub(1)).min(16));
        let until = now + backoff.max(least.unwrap_or_default()).min(PAUSE_MAX);
        state.until = state.until.max(Some(until));
        why.clone_into(&mut state.why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_bound_and_end_with_an_answer() {
        let (circuit, mut now) = (Circuit::default(), Instant::now());
        assert_eq!((circuit.pause(now), circuit.why()), (None, None));
        for secs in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            circuit.failed(now, None, "down");
            circuit.failed(now, None, "down too");
            assert_eq!(circuit.pause(now), Some(Duration::from_secs(secs)));
            now += Duration::from_secs(secs);
            assert_eq!(circuit.pause(now), None, "it may be asked again");
            assert_eq!(circuit.why().as_deref(), Some("down too"), "and is not known to be well");
        }
        circuit.answered();
        assert_eq!(circuit.why(), None);
        circuit.failed(now, Some(Duration::from_secs(30)), "slow down");
        assert_eq!(circuit.pause(now), Some(Duration::from_secs(30)));
        circuit.failed(now, Some(Duration::from_secs(86_400)), "slow down");
        assert_eq!(circuit.pause(now), Some(PAUSE_MAX));
    }

    #[test]
    fn answers_of_no_use_are_paid_ever_more_rarely_also_when_each_comes_at_once() {
        let (circuit, mut now) = (Circuit::default(), Instant::now());
        for mins in [1, 2, 4, 8, 16, 32, 64, 128, 240, 240] {
            circuit.answered();
            circuit.useless(now, "other dimensions");
            circuit.useless(now, "other dimensions");
            assert_eq!(circuit.pause(now), Some(Duration::from_secs(mins * 60)));
            assert_eq!(circuit.why().as_deref(), Some("other dimensions"));
            now += Duration::from_secs(mins * 60);
        }
        circuit.answered();
        circuit.stored();
        circuit.useless(now, "the disk");
        assert_eq!(circuit.pause(now), Some(USELESS_FIRST));
    }
}
