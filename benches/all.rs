//! Every measuring program, one after the other, and one table of the project's goals at the end:
//! `cargo bench --bench all`, with these behind `--`:
//!
//! | word | what it does |
//! | --- | --- |
//! | `--quick` | small sizes, some minutes in all: shows that everything works, not how fast it is |
//! | `--strict` | ends with 1 when a goal is missed or was not measured, or a program failed |
//! | `--soak` | an hour of mixed load, too, behind the others |
//! | names of programs | only these |

#![allow(clippy::print_stdout, reason = "a measuring program prints its table")]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::goals;
use support::rows::{HEAD, ROWS_FILE, Row, Verdict, machine};

/// The programs in the order in which they run: the short ones, whose figures depend most on a quiet machine, first.
const PROGRAMS: [&str; 19] = [
    "cold_start",
    "command_start",
    "http_load",
    "mcp",
    "plugins",
    "channels",
    "library",
    "fairness",
    "trigger_match",
    "world_tick",
    "snapshot_restore",
    "agent_memory",
    "memory_search",
    "memory_turn",
    "turns",
    "audit_verify",
    "rehearsal",
    "backup",
    "cluster",
];
/// The one that takes as long as it is told to.
const SOAK: &str = "soak";

/// What the command line asks for.
struct Asked {
    is_quick: bool,
    is_strict: bool,
    programs: Vec<&'static str>,
}

impl Asked {
    fn read() -> Result<Self, String> {
        let mut asked = Self { is_quick: false, is_strict: false, programs: Vec::new() };
        let mut with_soak = false;
        for argument in std::env::args().skip(1) {
            match &*argument {
                "--quick" => asked.is_quick = true,
                "--strict" => asked.is_strict = true,
                "--soak" => with_soak = true,
                // Cargo's own.
                "--bench" => {}
                name => {
                    let known = PROGRAMS.into_iter().chain([SOAK]).find(|program| *program == name);
                    asked.programs.push(known.ok_or_else(|| format!("there is no program '{name}'"))?);
                }
            }
        }
        if asked.programs.is_empty() {
            asked.programs.extend(PROGRAMS);
        }
        if with_soak && !asked.programs.contains(&SOAK) {
            asked.programs.push(SOAK);
        }
        Ok(asked)
    }
}

/// How a program ended.
struct Ended {
    program: &'static str,
    took: Duration,
    /// It ran to its end and said so.
    is_whole: bool,
    rows: Vec<Row>,
}

fn main() -> ExitCode {
    let asked = match Asked::read() {
        Ok(asked) => asked,
        Err(mistake) => {
            eprintln!("{mistake}; see the head of benches/all.rs");
            return ExitCode::from(2);
        }
    };
    let built = build(&asked.programs);
    let rows = tempfile::tempdir().expect("a temporary directory");
    let mut ended = Vec::new();
    for &program in &asked.programs {
        let Some(executable) = built.get(program) else { panic!("cargo did not build {program}") };
        ended.push(run(program, executable, &rows.path().join(program), asked.is_quick));
    }
    let is_good = table(&asked, &ended);
    if asked.is_strict && !is_good { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Has cargo build the programs all at once; gives where they are.
fn build(programs: &[&'static str]) -> BTreeMap<String, PathBuf> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["bench", "--no-run", "--message-format", "json-render-diagnostics"]);
    cargo.args(programs.iter().flat_map(|program| ["--bench", *program]));
    let output = cargo.stderr(Stdio::inherit()).output().expect("cargo can be started");
    assert!(output.status.success(), "the programs do not build");
    let artifact = |line: &[u8]| {
        let line: Value = serde_json::from_slice(line).ok()?;
        let is_bench = line["target"]["kind"][0] == "bench";
        let path = line["executable"].as_str().filter(|_| is_bench)?;
        Some((line["target"]["name"].as_str()?.to_owned(), PathBuf::from(path)))
    };
    output.stdout.split(|byte| *byte == b'\n').filter_map(artifact).collect()
}

/// Runs a program, which prints its own table meanwhile, and collects its rows.
fn run(program: &'static str, executable: &Path, rows: &Path, is_quick: bool) -> Ended {
    let mut command = Command::new(executable);
    command.arg("--bench").env(ROWS_FILE, rows).stdin(Stdio::null());
    if is_quick {
        command.env("AGENTSVC_BENCH_QUICK", "1");
    }
    let begun = Instant::now();
    let status = command.status().expect("a program that was just built starts");
    let took = begun.elapsed();
    println!("{program}: {status}, {} s", took.as_secs());
    let text = std::fs::read(rows).unwrap_or_default();
    let lines: Vec<_> = String::from_utf8_lossy(&text).lines().map(serde_json::from_str::<Row>).collect();
    // One that died while it wrote a row has said the others.
    let is_torn = lines.iter().any(Result::is_err);
    if is_torn {
        println!("{program}: its last row is torn and is left out");
    }
    let rows: Vec<Row> = lines.into_iter().flatten().collect();
    // The soak ends with 1 for a row that is missed, which its rows say.
    let is_judged = program == SOAK && rows.iter().any(|row| row.verdict == Verdict::Missed);
    let is_whole = !is_torn && (status.success() || is_judged);
    Ended { program, took, is_whole, rows }
}

/// Prints the goals and then everything else; true when each goal that was asked for is met.
fn table(asked: &Asked, ended: &[Ended]) -> bool {
    let sizes = if asked.is_quick { "; small sizes: what is met here says little" } else { "" };
    println!("\n# All measurements: {}{sizes}\n\n## Goals\n\n{HEAD}", machine());
    let mut is_good = true;
    for goal in goals::ALL {
        let rows: Vec<&Row> = ended.iter().flat_map(|ended| &ended.rows).collect();
        let mut answers = rows.into_iter().filter(|row| row.goal.as_deref() == Some(goal.key)).peekable();
        if answers.peek().is_none() {
            let was_asked = asked.programs.contains(&goal.program);
            is_good &= !was_asked;
            let why = if was_asked { "not measured" } else { "not asked for" };
            println!("| {} | {why} ({}) | | {} | |", goal.what, goal.program, goal.limit);
        }
        for row in answers {
            is_good &= row.verdict == Verdict::Met;
            println!("{}", row.line());
        }
    }
    println!("\n## Other figures\n\n{HEAD}");
    for row in ended.iter().flat_map(|ended| &ended.rows).filter(|row| row.goal.is_none()) {
        is_good &= row.verdict != Verdict::Missed;
        println!("{}", row.line());
    }
    println!("\n| program | seconds | |\n| --- | --- | --- |");
    for Ended { program, took, is_whole, .. } in ended {
        is_good &= is_whole;
        println!("| {program} | {} | {} |", took.as_secs(), if *is_whole { "" } else { "FAILED" });
    }
    is_good
}
