//! One run, and the shortest one that fails likewise.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::action::{self, Action};
use super::coverage::Coverage;
use super::harness::Harness;

/// What came of a run.
pub(crate) struct Run {
    pub(crate) result: Result<(), String>,
    pub(crate) coverage: Coverage,
    /// What happened, one line for each action.
    pub(crate) trace: Vec<String>,
}

/// A seed that fails.
pub(crate) struct Failure {
    pub(crate) seed: u64,
    why: String,
    trace: Vec<String>,
    actions: usize,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {} fails: {}", self.seed, self.why)?;
        writeln!(f, "the shortest run that fails has {} actions:", self.actions)?;
        self.trace.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

/// Runs these actions.
pub(crate) fn run(seed: u64, actions: &[Action]) -> Run {
    let mut harness = Harness::new(seed);
    let result = catch_unwind(AssertUnwindSafe(|| {
        for action in actions {
            harness.act(*action)?;
        }
        harness.end()
    }));
    let result = result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    });
    Run { result, coverage: std::mem::take(&mut harness.coverage), trace: std::mem::take(&mut harness.trace) }
}

/// Runs one seed and prints what happens.
pub(crate) fn watch(seed: u64, steps: usize) {
    let run = run(seed, &action::draw(seed, steps));
    run.trace.iter().for_each(|line| println!("{line}"));
    println!("{:?}", run.result);
}

/// Runs that shrinking may take.
const RUNS_MAX: usize = 400;

/// Leaves out actions as long as the run still fails for a reason of the same kind.
pub(crate) fn shrink(seed: u64, mut actions: Vec<Action>, mut why: String) -> Failure {
    let (mut length, mut runs) = (actions.len() / 2, 0);
    while length > 0 {
        let (mut at, mut is_shorter) = (0, false);
        while at < actions.len() && runs < RUNS_MAX {
            let mut fewer = actions.clone();
            fewer.drain(at..(at + length).min(actions.len()));
            runs += 1;
            match run(seed, &fewer).result {
                Err(again) if kind(&again) == kind(&why) => (actions, why, is_shorter) = (fewer, again, true),
                _ => at += length,
            }
        }
        if !is_shorter || runs >= RUNS_MAX {
            length /= 2;
        }
    }
    let trace = run(seed, &actions).trace;
    Failure { seed, why, trace, actions: actions.len() }
}

/// A reason without ids and numbers.
fn kind(why: &str) -> String {
    let letters = why.chars().filter(|c| c.is_alphabetic() || *c == ' ');
    letters.take(24).collect()
}
