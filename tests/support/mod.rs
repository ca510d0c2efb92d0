//! What the black-box tests stand on: the real daemon as a child process, a blocking HTTP/1.1 client that shows
//! every byte, and a reader of server-sent events. Nothing here knows the inside of the daemon.

#![allow(dead_code, reason = "every test binary uses its own part")]

pub(crate) mod clients;
pub(crate) mod daemon;
pub(crate) mod form;
pub(crate) mod http;
pub(crate) mod model;
pub(crate) mod model_server;
pub(crate) mod routes;
pub(crate) mod socket;
pub(crate) mod stream;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

/// The members of a body, and those of `changes` in their place.
pub(crate) fn changed(mut body: Value, changes: &Value) -> Value {
    for (key, value) in changes.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    body
}

/// How long any condition may take on a loaded machine before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Polls `probe` until it gives a value; panics with `what` when [`PATIENCE`] is over.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(Instant::now() < deadline, "gave up waiting: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits, where less than `room` is left of the clock's hour, for the next one. Sums of an hour, a day and a month begin
/// anew with it, and so do the moments at which they will: a test that compares them must not cross it. `room` is shorter
/// than [`PATIENCE`].
pub(crate) fn clear_of_the_hour(room: Duration) {
    until("an hour begins", || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        (now % 3_600 + room.as_secs() < 3_600).then_some(())
    });
}

/// Waits for a random part of `longest`: where the moment itself is the subject, and nothing is waited for.
pub(crate) fn some_time(rng: &mut Rng, longest: Duration) {
    std::thread::sleep(Duration::from_micros(rng.below(longest.as_micros() as usize) as u64));
}

/// What a variable of the environment says, where it is a number.
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The seed of a run that kills at random moments; `AGENTSVC_CRASH_SEED`, which is printed behind what the run is, repeats it.
#[allow(clippy::print_stdout, reason = "whoever repeats a run needs its seed")]
pub(crate) fn seed_of_run(what: &str) -> u64 {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
    let seed = number("AGENTSVC_CRASH_SEED").unwrap_or(clock);
    println!("{what}, AGENTSVC_CRASH_SEED={seed}");
    seed
}

/// A small deterministic generator (SplitMix64), so that a failing run can be repeated from its seed.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    /// The next number.
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.roll() % bound.max(1) as u64) as usize
    }
}
