//! Several nodes on one journal, over servers that delay, double and lose messages, elect leaders that lack the newest entries, lose
//! answers, take what they should refuse, and lose what they acknowledged. The stores, the writer and the rules of the journal
//! are the real ones; each node has a store of its own on a disk of its own. A run follows from its seed alone.
//!
//! ```text
//! cargo test --test cluster_simulation                                    150 seeds
//! cargo test --test cluster_simulation -- --seeds 10000                   a long run
//! cargo test --test cluster_simulation -- --seed 17 --trace               one, with all that happens
//! ```
//!
//! A seed that fails prints itself and a trace, shrunk by leaving out actions as long as the run still fails. See
//! `docs/testing.md`.

#![allow(clippy::print_stdout, reason = "a failing run is repeated from the seed it printed")]

mod action;
mod engine;
mod node;
#[allow(dead_code, reason = "the simulation of worlds uses more of it")]
#[path = "../simulation/rng.rs"]
mod rng;
mod scene;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use action::Action;
use scene::{Counts, Scene};

/// Seeds without another word.
const SEEDS: u64 = 150;
/// Actions of a run.
const ACTIONS: usize = 150;
/// Runs that shrinking may take.
const RUNS_MAX: usize = 300;
/// Seeds that fail before no more are looked for.
const FAILURES_MAX: usize = 3;

/// What was asked for on the command line; what is not known is of the test runner, and is left to it.
#[derive(Clone, Copy, Debug)]
struct Asked {
    seeds: u64,
    first: u64,
    is_traced: bool,
}

impl Asked {
    fn read() -> Result<Self, String> {
        let mut asked = Self { seeds: SEEDS, first: 1, is_traced: false };
        let words: Vec<String> = std::env::args().skip(1).collect();
        for (at, word) in words.iter().enumerate() {
            let value = || {
                let text = words.get(at + 1).map_or("", String::as_str);
                text.parse::<u64>().map_err(|_| format!("{word} '{text}': must be a number"))
            };
            match word.as_str() {
                "--seeds" => asked.seeds = value()?,
                "--first" => asked.first = value()?,
                "--seed" => (asked.first, asked.seeds) = (value()?, 1),
                "--trace" => asked.is_traced = true,
                _ => {}
            }
        }
        Ok(asked)
    }
}

/// What came of a run.
struct Run {
    result: Result<(), String>,
    counts: Counts,
    trace: Vec<String>,
}

fn run(seed: u64, actions: &[Action]) -> Run {
    let mut scene = match Scene::new(seed) {
        Ok(scene) => scene,
        Err(why) => return Run { result: Err(why), counts: Counts::default(), trace: Vec::new() },
    };
    let result = catch_unwind(AssertUnwindSafe(|| {
        actions.iter().try_for_each(|action| scene.act(*action))?;
        scene.end()
    }));
    let result = result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    });
    Run { result, counts: scene.counts, trace: std::mem::take(&mut scene.trace) }
}

/// Leaves out actions as long as the run still fails for a reason of the same kind.
fn shrink(seed: u64, mut actions: Vec<Action>, mut why: String) -> String {
    let kind = |why: &str| why.chars().filter(|c| c.is_alphabetic()).take(24).collect::<String>();
    let (mut length, mut runs) = (actions.len() / 2, 0);
    while length > 0 && runs < RUNS_MAX {
        let mut at = 0;
        while at < actions.len() && runs < RUNS_MAX {
            let mut fewer = actions.clone();
            fewer.drain(at..(at + length).min(actions.len()));
            runs += 1;
            match run(seed, &fewer).result {
                Err(again) if kind(&again) == kind(&why) => (actions, why) = (fewer, again),
                _ => at += length,
            }
        }
        length /= 2;
    }
    let trace = run(seed, &actions).trace.join("\n  ");
    format!("seed {seed} fails: {why}\nthe shortest run that fails has {} actions:\n  {trace}", actions.len())
}

fn main() -> ExitCode {
    if std::env::args().any(|word| word == "--list") {
        println!("cluster_simulation: test");
        return ExitCode::SUCCESS;
    }
    let asked = match Asked::read() {
        Ok(asked) => asked,
        Err(mistake) => {
            eprintln!("{mistake}");
            return ExitCode::from(2);
        }
    };
    let began = Instant::now();
    if asked.is_traced {
        let run = run(asked.first, &action::draw(asked.first, ACTIONS));
        println!("{}\n{:?}", run.trace.join("\n"), run.result);
        return if run.result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let (next, counts, failures) =
        (AtomicU64::new(asked.first), Mutex::new(Counts::default()), Mutex::new(Vec::<String>::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let is_enough = failures.lock().expect("no worker panics").len() >= FAILURES_MAX;
            if seed >= asked.first + asked.seeds || is_enough {
                break;
            }
            let actions = action::draw(seed, ACTIONS);
            let run = run(seed, &actions);
            counts.lock().expect("no worker panics").add(&run.counts);
            if let Err(why) = run.result {
                let failure = shrink(seed, actions, why);
                failures.lock().expect("no worker panics").push(failure);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let (failures, counts) =
        (failures.into_inner().expect("no worker panics"), counts.into_inner().expect("no worker panics"));
    println!(
        "{} seeds from {} on, {ACTIONS} actions each: {:?}; {counts:?}",
        asked.seeds,
        asked.first,
        began.elapsed()
    );
    failures.iter().for_each(|failure| println!("\n{failure}"));
    let has_seen_all =
        [counts.groups, counts.takeovers, counts.fenced, counts.lies, counts.halts].iter().all(|n| *n > 0);
    if asked.seeds >= SEEDS && !has_seen_all {
        println!("\nsomething that these runs are to show was in none of them");
    }
    if failures.is_empty() && (has_seen_all || asked.seeds < SEEDS) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
