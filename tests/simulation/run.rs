//! Deterministic simulation: whole worlds in virtual time, with a scripted outside, injected faults and kills, and what
//! must hold looked at after every step. A run follows from its seed alone.
//!
//! ```text
//! cargo test -p agentsvc-systems --test simulation                                         200 seeds
//! cargo test --workspace --test simulation -- --seeds 2000                         what the CI does
//! cargo test -p agentsvc-systems --test simulation -- --seed 17 --trace                    one, with all that happens
//! cargo test -p agentsvc-systems --test simulation -- --steps 500 --first 5000             longer runs of other seeds
//! ```
//!
//! A seed that fails prints itself and a trace, shrunk by leaving out actions as long as the run still fails. The runs of
//! the CI fail, too, when there is a row of the tables of transitions that none of them took. See `docs/testing.md`.

#![allow(clippy::print_stdout, reason = "a failing run is repeated from the seed it printed")]

mod a2a;
mod a2a_outbound;
mod action;
mod chats;
mod client;
mod coverage;
mod deliveries;
mod disk;
mod dreams;
mod entries;
mod event_hooks;
mod facts;
mod hands;
mod harness;
mod history;
mod hooks;
mod knowledge;
mod mcp;
mod media;
mod money;
mod observe;
mod outside;
mod people;
mod prompts;
mod reads;
mod rng;
mod shrink;
mod slots;
mod staff;
mod talk;
mod webhooks;
mod work;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use coverage::Coverage;
use shrink::Failure;

/// What was asked for on the command line; what is not known is of the test runner, and is left to it.
#[derive(Clone, Copy, Debug)]
struct Asked {
    seeds: u64,
    first: u64,
    steps: usize,
    is_traced: bool,
}

/// Seeds, from the first one on, of as many actions as by default, that take every row of the tables of transitions.
const SEEDS_OF_ALL_ROWS: u64 = 2_000;
/// Actions of a run.
const STEPS: usize = 120;

impl Asked {
    fn read() -> Result<Self, String> {
        let mut asked = Self { seeds: 200, first: 1, steps: STEPS, is_traced: false };
        if let Ok(seeds) = std::env::var("AGENTSVC_SIM_SEEDS") {
            asked.seeds = number("AGENTSVC_SIM_SEEDS", &seeds, 1)?;
        }
        let words: Vec<String> = std::env::args().skip(1).collect();
        for (at, word) in words.iter().enumerate() {
            let value = |least| number(word, words.get(at + 1).map_or("", String::as_str), least);
            match word.as_str() {
                "--seeds" => asked.seeds = value(1)?,
                "--first" => asked.first = value(0)?,
                "--steps" => asked.steps = value(1)? as usize,
                "--seed" => (asked.first, asked.seeds) = (value(0)?, 1),
                "--trace" => asked.is_traced = true,
                _ => {}
            }
        }
        Ok(asked)
    }

    /// Must the runs take every row of the tables of transitions?
    fn takes_all_rows(&self) -> bool {
        self.seeds >= SEEDS_OF_ALL_ROWS && self.first <= 1 && self.steps >= STEPS
    }
}

/// The number behind `name`: a wrong one must not look like a run of what was meant.
fn number(name: &str, text: &str, least: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number: &u64| *number >= least);
    number.ok_or_else(|| format!("{name} '{text}': must be a number, {least} or more"))
}

fn main() -> ExitCode {
    if std::env::args().any(|word| word == "--list") {
        println!("simulation: test");
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
        shrink::watch(asked.first, asked.steps);
    } else {
        // A panic is caught, and told with its seed.
        std::panic::set_hook(Box::new(|_| {}));
    }
    let (next, coverage, failures) =
        (AtomicU64::new(asked.first), Mutex::new(Coverage::default()), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| work(asked, &next, &coverage, &failures));
        }
    });
    let mut failures: Vec<Failure> = failures.into_inner().expect("no worker panics");
    let coverage = coverage.into_inner().expect("no worker panics");
    let never = coverage.print();
    println!("{} seeds from {} on, {} actions each: {:?}", asked.seeds, asked.first, asked.steps, began.elapsed());
    failures.sort_by_key(|failure| failure.seed);
    for failure in &failures {
        println!("\n{failure}");
    }
    let is_missing = never > 0 && asked.takes_all_rows();
    if is_missing {
        println!("\n{never} transitions of the tables were taken by no run, and these runs must take them all");
    }
    if failures.is_empty() && !is_missing { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Seeds that fail before a run gives up looking for more.
const FAILURES_MAX: usize = 3;

fn work(asked: Asked, next: &AtomicU64, coverage: &Mutex<Coverage>, failures: &Mutex<Vec<Failure>>) {
    let mut own = Coverage::default();
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        let is_enough = failures.lock().expect("no worker panics").len() >= FAILURES_MAX;
        if seed >= asked.first + asked.seeds || is_enough {
            break;
        }
        let actions = action::draw(seed, asked.steps);
        let run = shrink::run(seed, &actions);
        own.add(&run.coverage);
        if let Err(why) = run.result {
            let failure = shrink::shrink(seed, actions, why);
            failures.lock().expect("no worker panics").push(failure);
        }
    }
    coverage.lock().expect("no worker panics").add(&own);
}
