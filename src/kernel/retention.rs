//! The time that retention goes by: a clock that suddenly stands elsewhere makes nothing old.
//!
//! What is past its retention is deleted for good, so one reading of the clock is not enough. The home remembers what the clock
//! read when it was last believed (`{home}/clock.json`). A reading that is more than [`BOUND`] from what it must be by then, at the
//! start or later, is not believed before the daemon has run with it for [`HOLD`], over several starts if need be; until then
//! retention goes by what the time was at most. A daemon that was off for longer is late by a day of running, and nothing else.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agentsvc_components::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::disk;
use super::world_loop::Clock;

/// How far the clock may be from what it should read.
const BOUND: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the daemon must run with another time before it is believed.
const HOLD: Duration = Duration::from_secs(24 * 60 * 60);
/// How often the time is remembered.
const REMEMBER_EVERY: Duration = Duration::from_secs(10 * 60);

/// The time that retention goes by. Copies share it.
#[derive(Clone)]
pub struct RetentionClock {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Clock,
    /// Where it is remembered.
    path: Option<PathBuf>,
    state: Mutex<State>,
}

/// What is believed.
struct State {
    /// What the clock read when it was last believed; `None`: nothing is known of a home that was used before.
    believed: Option<Timestamp>,
    /// When that was, by the clock that never jumps.
    at: Duration,
    /// Since when the clock is not believed.
    doubted: Option<Duration>,
    /// How long it was not believed in earlier runs.
    doubted_before: Duration,
}

/// What is remembered.
#[derive(Default, Serialize, Deserialize)]
struct Remembered {
    /// What the clock read when it was last believed, in milliseconds since 1970; null when that is not known.
    seen_ms: Option<i64>,
    /// For how long the daemon has run since with a clock that was not believed, in milliseconds.
    #[serde(default)]
    doubted_ms: u64,
}

impl Default for RetentionClock {
    fn default() -> Self {
        Self::trusting(Clock::system())
    }
}

impl RetentionClock {
    /// One that believes what `clock` reads now, and remembers nothing.
    pub fn trusting(clock: Clock) -> Self {
        let believed = Some((clock.wall)());
        Self::new(clock, None, believed, Duration::ZERO)
    }

    /// That of the home with the file `path`; `is_new` when nothing was ever stored there.
    pub fn open(path: PathBuf, clock: Clock, is_new: bool) -> Self {
        let seen = match seen(&path) {
            Ok(seen) => seen,
            Err(error) => {
                tracing::warn!(%error, "what the clock read last is not known");
                Remembered::default()
            }
        };
        let believed = seen.seen_ms.map(Timestamp).or_else(|| is_new.then(|| (clock.wall)()));
        let retention = Self::new(clock, Some(path), believed, Duration::from_millis(seen.doubted_ms));
        retention.remember();
        retention
    }

    fn new(clock: Clock, path: Option<PathBuf>, believed: Option<Timestamp>, doubted_before: Duration) -> Self {
        let at = (clock.running)();
        let state = Mutex::new(State { believed, at, doubted: None, doubted_before });
        Self { shared: Arc::new(Shared { clock, path, state }) }
    }

    /// The time by which things are old. Never blocks.
    pub fn now(&self) -> Timestamp {
        let Shared { clock, state, .. } = &*self.shared;
        state.lock().read((clock.wall)(), (clock.running)())
    }

    /// `moment`, which was derived from the clock, by this time: as much earlier as this is behind.
    pub fn held_back(&self, moment: Timestamp) -> Timestamp {
        let behind = (self.shared.clock.wall)().0.saturating_sub(self.now().0).max(0);
        Timestamp(moment.0.saturating_sub(behind))
    }

    /// Remembers what the clock reads if it is believed, and else for how long it was not. Blocks on the disk.
    pub fn remember(&self) {
        self.now();
        let Some(path) = &self.shared.path else { return };
        let Some(remembered) = self.shared.state.lock().remembered((self.shared.clock.running)()) else { return };
        let text = serde_json::to_vec(&remembered).unwrap_or_default();
        if let Err(error) = disk::replace(path, &text) {
            tracing::warn!(%error, "what the clock reads cannot be remembered");
        }
    }

    /// Remembers it now and then.
    pub fn watch(&self, handle: &Handle) {
        let retention = self.clone();
        handle.spawn(async move {
            let mut ticks = tokio::time::interval(REMEMBER_EVERY);
            loop {
                ticks.tick().await;
                let retention = retention.clone();
                let _panicked = tokio::task::spawn_blocking(move || retention.remember()).await;
            }
        });
    }
}

impl State {
    /// The time by which things are old, when the clocks read `wall` and `running`.
    fn read(&mut self, wall: Timestamp, running: Duration) -> Timestamp {
        let passed = i64::try_from(running.saturating_sub(self.at).as_millis()).unwrap_or(i64::MAX);
        let due = self.believed.map(|believed| Timestamp(believed.0.saturating_add(passed)));
        let is_near = |due: Timestamp| u128::from(wall.0.abs_diff(due.0)) <= BOUND.as_millis();
        let is_held_long = self.doubted.is_some() && self.doubted_for(running) >= HOLD;
        if is_held_long || due.is_some_and(is_near) {
            if self.doubted.take().is_some() {
                tracing::info!(now = %wall, "retention goes by the clock again");
            }
            self.doubted_before = Duration::ZERO;
            (self.believed, self.at) = (Some(wall), running);
            return wall;
        }
        if self.doubted.is_none() {
            self.doubted = Some(running);
            match due {
                Some(due) => tracing::warn!(
                    now = %wall, expected = %due,
                    "the clock is more than a day off, or the daemon was: nothing is deleted as older than its retention by \
                    the new time before the daemon has run for 24 hours"
                ),
                None => tracing::warn!(
                    "it is not known when this home was last used: nothing is deleted as older than its retention before \
                    the daemon has run for 24 hours"
                ),
            }
        }
        due.map_or(Timestamp(0), |due| due.min(wall))
    }

    /// For how long the clock was not believed, in this run and in earlier ones.
    fn doubted_for(&self, running: Duration) -> Duration {
        let here = self.doubted.map_or(Duration::ZERO, |since| running.saturating_sub(since));
        self.doubted_before.saturating_add(here)
    }

    /// What the next start must know; `None`: nothing yet.
    fn remembered(&self, running: Duration) -> Option<Remembered> {
        let doubted_ms = u64::try_from(self.doubted_for(running).as_millis()).unwrap_or(u64::MAX);
        let is_news = self.doubted.is_none() || doubted_ms > 0;
        is_news.then(|| Remembered { seen_ms: self.believed.map(|believed| believed.0), doubted_ms })
    }
}

/// What the file says; the default when there is none.
fn seen(path: &Path) -> io::Result<Remembered> {
    let Some(bytes) = disk::there(disk::read(path))? else { return Ok(Remembered::default()) };
    Ok(serde_json::from_slice(&bytes)?)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

    use super::*;

    const HOUR_MS: i64 = 60 * 60 * 1_000;
    const DAY_MS: i64 = 24 * HOUR_MS;
    const START: i64 = 1_800_000_000_000;

    /// Clocks that a test sets.
    #[derive(Clone, Default)]
    struct Hands {
        wall: Arc<AtomicI64>,
        running: Arc<AtomicU64>,
    }

    impl Hands {
        fn at(wall: i64) -> Self {
            let hands = Self::default();
            hands.wall.store(wall, Ordering::Relaxed);
            hands
        }

        fn clock(&self) -> Clock {
            let (wall, running) = (Arc::clone(&self.wall), Arc::clone(&self.running));
            Clock {
                wall: Arc::new(move || Timestamp(wall.load(Ordering::Relaxed))),
                running: Arc::new(move || Duration::from_millis(running.load(Ordering::Relaxed))),
            }
        }

        /// Time passes.
        fn pass(&self, ms: i64) {
            self.wall.fetch_add(ms, Ordering::Relaxed);
            self.running.fetch_add(ms.unsigned_abs(), Ordering::Relaxed);
        }
    }

    #[test]
    fn a_clock_that_is_far_ahead_at_a_start_makes_nothing_old() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("clock.json");
        let open = |hands: &Hands| RetentionClock::open(path.clone(), hands.clock(), false);
        let first = Hands::at(START);
        RetentionClock::open(path.clone(), first.clock(), true);
        let wrong = || {
            for _ in 0..3 {
                let wrong = Hands::at(START + 10_000 * DAY_MS);
                let retention = open(&wrong);
                assert_eq!(retention.now(), Timestamp(START));
                wrong.pass(7 * HOUR_MS);
                retention.remember();
                assert_eq!(retention.now(), Timestamp(START + 7 * HOUR_MS));
                let day = Timestamp(START + 10_000 * DAY_MS + 7 * HOUR_MS - 3 * DAY_MS);
                assert_eq!(retention.held_back(day), Timestamp(START + 7 * HOUR_MS - 3 * DAY_MS));
            }
        };
        wrong();
        // The right time is believed at once, and what was doubted before it counts no more.
        assert_eq!(open(&Hands::at(START)).now(), Timestamp(START));
        wrong();
        let right = Hands::at(START + 5 * HOUR_MS);
        assert_eq!(open(&right).now(), Timestamp(START + 5 * HOUR_MS));
        // After a long pause the daemon is late by a day.
        let late = Hands::at(START + 60 * DAY_MS);
        let retention = open(&late);
        assert_eq!(retention.now(), Timestamp(START + 5 * HOUR_MS));
        late.pass(DAY_MS);
        assert_eq!(retention.now(), Timestamp(START + 61 * DAY_MS));
        retention.remember();
        let next = Hands::at(START + 61 * DAY_MS);
        assert_eq!(open(&next).now(), Timestamp(START + 61 * DAY_MS));
    }

    #[test]
    fn a_daemon_that_never_runs_for_a_day_comes_to_believe_its_clock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("clock.json");
        let mut believed = Vec::new();
        // For eight hours each week, of a home that is not known to be new.
        for week in 0..5 {
            let hands = Hands::at(START + week * 7 * DAY_MS);
            let retention = RetentionClock::open(path.clone(), hands.clock(), false);
            hands.pass(8 * HOUR_MS);
            believed.push(retention.now().0);
            retention.remember();
        }
        let at = |week: i64| START + week * 7 * DAY_MS + 8 * HOUR_MS;
        assert_eq!(believed, [0, 0, at(2), at(2) + 8 * HOUR_MS, at(2) + 8 * HOUR_MS]);
    }

    #[test]
    fn a_jump_while_it_runs_is_not_believed_and_the_way_back_is() {
        let hands = Hands::at(START);
        let retention = RetentionClock::trusting(hands.clock());
        hands.pass(40 * DAY_MS);
        assert_eq!(retention.now(), Timestamp(START + 40 * DAY_MS), "a look once in a month is enough");
        hands.wall.fetch_add(300 * DAY_MS, Ordering::Relaxed);
        assert_eq!(retention.now(), Timestamp(START + 40 * DAY_MS));
        hands.pass(HOUR_MS);
        hands.wall.fetch_sub(300 * DAY_MS, Ordering::Relaxed);
        assert_eq!(retention.now(), Timestamp(START + 40 * DAY_MS + HOUR_MS));
        // One that falls back and returns, as on a machine whose clock does not run while it is off.
        hands.wall.store(0, Ordering::Relaxed);
        assert_eq!(retention.now(), Timestamp(0));
        hands.wall.store(START + 40 * DAY_MS + 2 * HOUR_MS, Ordering::Relaxed);
        assert_eq!(retention.now(), Timestamp(START + 40 * DAY_MS + 2 * HOUR_MS));
    }

    #[test]
    fn a_home_of_which_nothing_is_known_waits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("clock.json");
        for text in [None, Some("{"), Some("{\"seen_ms\": \"x\"}")] {
            if let Some(text) = text {
                std::fs::write(&path, text).unwrap();
            }
            let hands = Hands::at(START);
            let retention = RetentionClock::open(path.clone(), hands.clock(), false);
            assert_eq!(retention.now(), Timestamp(0), "{text:?}");
            assert_eq!(path.exists(), text.is_some());
            hands.pass(DAY_MS);
            assert_eq!(retention.now(), Timestamp(START + DAY_MS));
        }
    }
}
