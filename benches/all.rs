//! The measuring programs, one after the other, and one table of the project's goals at the end: `cargo bench --bench all`, with
//! these behind `--`:
//!
//! | word | what it does |
//! | --- | --- |
//! | `--quick` | small sizes, some minutes in all: shows that everything works, not how fast it is |
//! | `--strict` | ends with 1 when a goal is missed or was not measured, or a program failed |
//! | `--soak` | an hour of mixed load, too, behind the others |
//! | names of programs | only these; names of its parts behind a program's: only those parts of it |
//!
//! Each program runs in a process of its own, by the same executable.

#![allow(clippy::print_stdout, reason = "a measuring program prints its table")]

mod agent_memory;
mod audit_verify;
mod backup;
mod channels;
mod cluster;
mod cold_start;
mod command_start;
mod fairness;
mod http_load;
mod library;
mod mcp;
mod measure;
mod memory_search;
mod memory_turn;
mod plugins;
mod rehearsal;
mod snapshot_restore;
mod soak;
mod trigger_match;
mod turns;
mod world_tick;

#[allow(dead_code, unused_imports, reason = "the faults themselves are tests")]
#[path = "../tests/cluster/faults.rs"]
mod faults;
#[allow(dead_code, reason = "what clients saw is judged by tests")]
#[path = "../tests/cluster/history.rs"]
mod history;
#[allow(dead_code, reason = "the load of tests is another one")]
#[path = "../tests/cluster/load.rs"]
mod load;
#[allow(dead_code, reason = "nodes fail in fewer ways here")]
#[path = "../tests/cluster/nodes.rs"]
mod nodes;
#[allow(dead_code, unused_imports, reason = "nothing is between the programs here")]
#[path = "../tests/cluster/proxy.rs"]
mod proxy;
#[allow(dead_code, reason = "servers fail in fewer ways here")]
#[path = "../tests/cluster/servers.rs"]
mod servers;
#[path = "../tests/support/mod.rs"]
mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use measure::goals;
use measure::rows::{HEAD, ROWS_FILE, RUN, Row, Verdict, machine};

/// The daemon's, for the worlds that run in this process.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The programs in the order in which they run: the short ones, whose figures depend most on a quiet machine, first.
const PROGRAMS: [(&str, fn()); 19] = [
    ("cold_start", cold_start::main),
    ("command_start", command_start::main),
    ("http_load", http_load::main),
    ("mcp", mcp::main),
    ("plugins", plugins::main),
    ("channels", channels::main),
    ("library", library::main),
    ("fairness", fairness::main),
    ("trigger_match", trigger_match::main),
    ("world_tick", world_tick::main),
    ("snapshot_restore", snapshot_restore::main),
    ("agent_memory", agent_memory::main),
    ("memory_search", memory_search::main),
    ("memory_turn", memory_turn::main),
    ("turns", turns::main),
    ("audit_verify", audit_verify::main),
    ("rehearsal", rehearsal::main),
    ("backup", backup::main),
    ("cluster", cluster::main),
];
/// The one that takes as long as it is told to.
const SOAK: &str = "soak";

/// What programs start this executable as: is this process one, and what it does then.
type Helper = (fn() -> bool, fn());

/// All of them.
const HELPERS: [Helper; 4] = [
    (channels::is_adapter, channels::adapt),
    (http_load::is_hello, http_load::hello),
    (mcp::is_server, mcp::serve),
    (plugins::is_hook, plugins::serve),
];

/// A program, and which of its parts are asked for; without any, all are.
type Chosen = (&'static str, Vec<String>);

/// What the command line asks for.
#[derive(Default)]
struct Asked {
    is_quick: bool,
    is_strict: bool,
    programs: Vec<Chosen>,
}

impl Asked {
    fn read() -> Result<Self, String> {
        let mut asked = Self::default();
        let mut with_soak = false;
        for argument in std::env::args().skip(1) {
            let mut names = PROGRAMS.into_iter().map(|(name, _)| name).chain([SOAK]);
            match &*argument {
                "--quick" => asked.is_quick = true,
                "--strict" => asked.is_strict = true,
                "--soak" => with_soak = true,
                // Cargo's own.
                "--bench" => {}
                word if word.starts_with('-') => return Err(format!("there is no option '{word}'")),
                word => match (names.find(|name| *name == word), asked.programs.last_mut()) {
                    (Some(program), _) => asked.programs.push((program, Vec::new())),
                    (None, Some((_, parts))) => parts.push(argument),
                    (None, None) => return Err(format!("there is no program '{word}'")),
                },
            }
        }
        if asked.programs.is_empty() {
            asked.programs.extend(PROGRAMS.map(|(name, _)| (name, Vec::new())));
        }
        if with_soak && !asked.has(SOAK) {
            asked.programs.push((SOAK, Vec::new()));
        }
        Ok(asked)
    }

    fn has(&self, program: &str) -> bool {
        self.programs.iter().any(|(name, _)| *name == program)
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
    if let Some((_, helper)) = HELPERS.into_iter().find(|(is_meant, _)| is_meant()) {
        helper();
        return ExitCode::SUCCESS;
    }
    let mut arguments = std::env::args().skip(1);
    if arguments.next().is_some_and(|first| first == RUN) {
        return run_here(&arguments.next().unwrap_or_default());
    }
    let asked = match Asked::read() {
        Ok(asked) => asked,
        Err(mistake) => {
            eprintln!("{mistake}; see the head of benches/all.rs");
            return ExitCode::from(2);
        }
    };
    let rows = tempfile::tempdir().expect("a temporary directory");
    let mut ended = Vec::new();
    for program in &asked.programs {
        ended.push(run(program, &rows.path().join(program.0), asked.is_quick));
    }
    let is_good = table(&asked, &ended);
    if asked.is_strict && !is_good { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Is a program, in a process that [`run`] started.
fn run_here(program: &str) -> ExitCode {
    if program == SOAK {
        return soak::main();
    }
    let found = PROGRAMS.into_iter().find(|(name, _)| *name == program);
    found.expect("its parent knows the programs").1();
    ExitCode::SUCCESS
}

/// Runs a program, which prints its own table meanwhile, and collects its rows.
fn run((program, parts): &Chosen, rows: &Path, is_quick: bool) -> Ended {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args([RUN, program]).args(parts).env(ROWS_FILE, rows).stdin(Stdio::null());
    if is_quick {
        command.env("AGENTSVC_BENCH_QUICK", "1");
    }
    let begun = Instant::now();
    let status = command.status().expect("this program starts");
    let took = begun.elapsed();
    println!("{program}: {status}, {} s", took.as_secs());
    let text = std::fs::read(rows).unwrap_or_default();
    if let Some(path) = std::env::var_os(ROWS_FILE) {
        let file = std::fs::File::options().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(&text)).expect("the file of rows can be written");
    }
    let lines: Vec<_> = String::from_utf8_lossy(&text).lines().map(serde_json::from_str::<Row>).collect();
    // One that died while it wrote a row has said the others.
    let is_torn = lines.iter().any(Result::is_err);
    if is_torn {
        println!("{program}: its last row is torn and is left out");
    }
    let rows: Vec<Row> = lines.into_iter().flatten().collect();
    // The soak ends with 1 for a row that is missed, which its rows say.
    let is_judged = *program == SOAK && rows.iter().any(|row| row.verdict == Verdict::Missed);
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
            let was_asked = asked.has(goal.program);
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
