//! The runs. `AGENTSVC_SIM_SCHEDULES=100000 cargo test --release -p agentsvc-systems --lib schedule::simulation` is the
//! large one; `AGENTSVC_SIM_SEED` begins at another seed.

#![allow(clippy::print_stdout, reason = "a failing run is repeated from the seed it printed")]

use std::env;

use super::fixture::{Fixture, Totals};

/// Schedules of one world.
const HOUSE: usize = 300;

fn number(name: &str, default: usize) -> usize {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn every_slot_has_exactly_one_outcome() {
    let count = number("AGENTSVC_SIM_SCHEDULES", 300);
    let seed = number("AGENTSVC_SIM_SEED", 1);
    let mut totals = Totals::default();
    let mut left = count;
    while left > 0 {
        let (some, seed) = (left.min(HOUSE), (seed + count - left) as u64);
        println!("seed {seed}: {some} schedules");
        let one = Fixture::new(seed, some).run();
        totals.slots += one.slots;
        totals.fired += one.fired;
        totals.restarts += one.restarts;
        left -= some;
    }
    println!("{count} schedules and cron jobs, 30 days: {totals:?}");
    assert!(totals.slots >= totals.fired && totals.fired as usize > count && totals.restarts > 0);
}
