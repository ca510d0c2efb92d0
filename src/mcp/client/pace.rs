//! How often a server whose lists change is asked for them: each list that differs is stored.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest rest before another list.
const REST_MIN: Duration = Duration::from_secs(1);
/// The longest one, and how long a server must be quiet to have the shortest again.
const REST_MAX: Duration = Duration::from_secs(60);
/// Lists with the shortest rest before rests grow.
const QUICK_LISTS: u32 = 4;

/// The rests between the lists of one connection.
#[derive(Default)]
pub(super) struct Pace {
    /// Lists since it was quiet.
    lists: u32,
    /// When the last rest ended.
    rested: Option<Instant>,
}

impl Pace {
    /// How long to rest when the server says at `now` that its lists changed.
    pub(super) fn rest(&mut self, now: Instant) -> Duration {
        let is_quiet = |rested: Instant| now.saturating_duration_since(rested) >= REST_MAX;
        if self.rested.is_some_and(is_quiet) {
            self.lists = 0;
        }
        self.lists = self.lists.saturating_add(1);
        let rest = REST_MIN.saturating_mul(2_u32.saturating_pow(self.lists.saturating_sub(QUICK_LISTS))).min(REST_MAX);
        self.rested = Some(now + rest);
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_grow_while_lists_keep_changing() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        let mut rests = Vec::new();
        for _ in 0..12 {
            let rest = pace.rest(now);
            rests.push(rest.as_secs());
            now += rest + Duration::from_millis(10);
        }
        assert_eq!(rests, [1, 1, 1, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        for _ in 0..100 {
            assert_eq!(pace.rest(now), REST_MAX);
            now += REST_MAX * 3 / 2;
        }
        now += REST_MAX * 2;
        assert_eq!(pace.rest(now), REST_MIN, "it was quiet");
    }
}
