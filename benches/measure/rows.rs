//! What the measuring programs print: one table for each, and the same rows as lines of JSON for who runs several.

use std::fs;
use std::io::Write;

use serde::{Deserialize, Serialize};

use super::goals::Goal;

/// The variable that names the file to which each row is also appended as a line of JSON. Unset: none is written.
pub(crate) const ROWS_FILE: &str = "AGENTSVC_BENCH_ROWS";

/// The word before the name of the one program that a process of the measuring programs is.
pub(crate) const RUN: &str = "--run";

/// What a row says of its goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The goal is reached.
    Met,
    /// It is not.
    Missed,
    /// There is no goal: the figure is written down.
    Recorded,
}

/// One line of a table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    /// What was measured, with its sizes.
    pub(crate) what: String,
    /// What came out.
    pub(crate) result: String,
    /// What the result is to be seen beside, measured in the same run; may be empty.
    pub(crate) baseline: String,
    /// What is wanted; empty when nothing is.
    pub(crate) limit: String,
    /// How the one stands to the other.
    pub(crate) verdict: Verdict,
    /// The key of the project's goal that this row answers, if it does.
    pub(crate) goal: Option<String>,
}

impl Row {
    /// A figure without a goal.
    pub(crate) fn new(what: impl Into<String>, result: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            result: result.into(),
            baseline: String::new(),
            limit: String::new(),
            verdict: Verdict::Recorded,
            goal: None,
        }
    }

    /// Sets something beside the result.
    pub(crate) fn beside(mut self, baseline: impl Into<String>) -> Self {
        self.baseline = baseline.into();
        self
    }

    /// Holds the result to a bound of the program's own.
    pub(crate) fn bound(mut self, limit: &str, is_met: bool) -> Self {
        limit.clone_into(&mut self.limit);
        self.verdict = if is_met { Verdict::Met } else { Verdict::Missed };
        self
    }

    /// Holds the result to a goal of the project.
    pub(crate) fn goal(self, goal: &Goal, is_met: bool) -> Self {
        Self { goal: Some(goal.key.to_owned()), ..self.bound(goal.limit, is_met) }
    }

    /// Prints the row, and hands it to who runs the program.
    pub(crate) fn print(self) {
        println!("{}", self.line());
        let Some(path) = std::env::var_os(ROWS_FILE) else { return };
        let json = serde_json::to_string(&self).expect("a row is plain text");
        let file = fs::File::options().create(true).append(true).open(path);
        let written = file.and_then(|mut file| writeln!(file, "{json}"));
        written.expect("the file of rows can be written");
    }

    /// The row as a line of a Markdown table.
    pub(crate) fn line(&self) -> String {
        let Self { what, result, baseline, limit, verdict, .. } = self;
        let limit = if limit.is_empty() { "recorded" } else { limit };
        let verdict = match verdict {
            Verdict::Met => "met",
            Verdict::Missed => "MISSED",
            Verdict::Recorded => "",
        };
        format!("| {what} | {result} | {baseline} | {limit} | {verdict} |")
    }
}

/// The first two lines of a table of rows.
pub(crate) const HEAD: &str = "| what | result | beside | goal | |\n| --- | --- | --- | --- | --- |";

/// Prints the head of the table of a program.
pub(crate) fn head(program: &str) {
    println!("\n{program}: {}\n{HEAD}", machine());
}

/// Cores, memory and kernel, in a few words.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib: u64 = memory.lines().next().and_then(|l| l.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cores} cores, {} GiB, Linux {}", kib >> 20, kernel.trim())
}

/// Runs with small sizes: `all --quick` sets this for every program.
pub(crate) fn is_quick() -> bool {
    std::env::var("AGENTSVC_BENCH_QUICK").is_ok_and(|value| value == "1")
}

/// A size of a measurement: what the variable `name` says, else `full`, or `quick` when small sizes are asked for.
/// Panics when the variable is no number: a size that was not meant measures nothing.
pub(crate) fn size(name: &str, full: usize, quick: usize) -> usize {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a number, not '{text}'")),
        Err(_) if is_quick() => quick,
        Err(_) => full,
    }
}

/// Is this part of the program asked for? All are when the words behind its name are none.
pub(crate) fn is_wanted(part: &str) -> bool {
    let mut named = std::env::args().skip_while(|word| word != RUN).skip(2).peekable();
    named.peek().is_none() || named.any(|name| name == part)
}
