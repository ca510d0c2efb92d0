//! Where wall-clock time enters the daemon: here, and nowhere else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agentsvc_api::http::timestamp::timestamp_now;
use agentsvc_components::Timestamp;

/// The clocks of the world loop; tests bring their own.
#[derive(Clone)]
pub struct Clock {
    /// The time of day, which may jump when somebody sets it.
    pub wall: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Time since some fixed moment, which never jumps; paces the beat.
    pub running: Arc<dyn Fn() -> Duration + Send + Sync>,
}

impl Clock {
    /// The clocks of this machine.
    pub fn system() -> Self {
        let start = Instant::now();
        Self { wall: Arc::new(timestamp_now), running: Arc::new(move || start.elapsed()) }
    }
}

/// The pace of the beat: due at fixed distances; a beat that is missed is skipped, never made up for in a burst.
#[derive(Debug)]
pub(super) struct Pace {
    period: Duration,
    due: Duration,
}

impl Pace {
    /// Beats `hz` times a second, the first one period after `start`. 0 counts as 1.
    pub(super) fn new(hz: u32, start: Duration) -> Self {
        let period = Duration::from_secs(1) / hz.max(1);
        Self { period, due: start + period }
    }

    /// How long until the next beat; zero when it is due.
    pub(super) fn until_due(&self, now: Duration) -> Duration {
        self.due.saturating_sub(now)
    }

    /// Takes the beat that is due at `now` and tells how many more were missed; `None` when none is due.
    pub(super) fn take(&mut self, now: Duration) -> Option<u64> {
        let late = now.checked_sub(self.due)?;
        let missed = u32::try_from(late.as_nanos() / self.period.as_nanos()).unwrap_or(u32::MAX - 1);
        self.due += self.period * (missed + 1);
        Some(u64::from(missed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn beats_come_at_fixed_distances_and_missed_ones_are_skipped() {
        let mut pace = Pace::new(20, ms(1_000));
        assert_eq!(pace.until_due(ms(1_010)), ms(40));
        assert_eq!(pace.take(ms(1_049)), None);
        assert_eq!(pace.take(ms(1_050)), Some(0));
        assert_eq!(pace.take(ms(1_051)), None);
        // Due at 1,100, 1,150 and 1,200: one is taken and two are missed, and the next is on the grid again.
        assert_eq!(pace.take(ms(1_201)), Some(2));
        assert_eq!(pace.until_due(ms(1_201)), ms(49));
    }

    #[test]
    fn the_system_clock_is_of_this_century() {
        let clock = Clock::system();
        assert!((clock.wall)() > Timestamp(1_600_000_000_000));
        assert!((clock.running)() < Duration::from_secs(60));
    }
}
