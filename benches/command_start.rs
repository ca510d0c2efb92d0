//! How long a command takes to start in its sandbox: `cargo bench --bench all -- command_start`. The time is that from the call to
//! the moment which the command itself prints, so the start of `date` is in it. The steps are those of `shell_exec`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::measure::{Row, goals, head, ms, percentile, size};
use agentsvc::kernel::sandbox::config::{ExecMode, ExecPolicy};
use agentsvc::kernel::sandbox::{Asked, Commands, Request, Workspaces};
use agentsvc_components::AgentId;
use agentsvc_components::kernel::holder::Holder;
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

/// Files of one directory.
const DIRECTORY: usize = 1_000;
/// What is wanted.
const GOAL: Duration = Duration::from_millis(15);

pub(crate) fn main() {
    head("command_start");
    let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    let commands = size("AGENTSVC_BENCH_COMMANDS", 200, 20);
    let files = size("AGENTSVC_BENCH_FILES", 50_000, 1_000);
    start(&runtime, commands, 0).print();
    start(&runtime, commands, files).print();
}

/// So many commands, one after the other, in a workspace of so many files.
fn start(runtime: &Runtime, commands: usize, files: usize) -> Row {
    let home = tempfile::tempdir().expect("a temporary directory");
    let workspaces = Workspaces::new(home.path().join("workspaces"));
    let agent = AgentId(Uuid::from_u128(1));
    fill(workspaces.open(agent, "ann").expect("a workspace").path(), files);
    let policy = ExecPolicy { mode: ExecMode::Full, ..ExecPolicy::default() };
    let launcher = PathBuf::from(env!("CARGO_BIN_EXE_agentsvc"));
    let sandbox = Commands::with_launcher(policy, vec![home.path().to_owned()], Vec::new(), launcher);
    let one = async || {
        let begun = SystemTime::now();
        let workspaces = workspaces.clone();
        let opened = tokio::task::spawn_blocking(move || {
            workspaces.open(agent, "ann").and_then(|workspace| workspace.for_command())
        });
        let request = Request {
            place: sandbox.place(Holder::Family(agent)).await.expect("a free place"),
            asked: Asked::Words(["date", "+%s%N"].map(str::to_owned).into()),
            workspace: opened.await.expect("no panic").expect("a workspace with room"),
            shown: Vec::new(),
            granted: vec!["*".into()],
            network: false,
            secrets: Vec::new(),
            variables: Vec::new(),
            timeout_secs: None,
        };
        let ran = sandbox.run(request).await.expect("a command starts");
        let nanos: u64 = ran.stdout.trim().parse().unwrap_or_else(|_| panic!("a moment: {ran:?}"));
        let started = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos);
        started.duration_since(begun).unwrap_or_default()
    };
    let mut times: Vec<Duration> = runtime.block_on(async {
        one().await;
        let mut times = Vec::with_capacity(commands);
        for _ in 0..commands {
            times.push(one().await);
        }
        times
    });
    times.sort_unstable();
    let (p50, p99) = (percentile(&times, 0.5), percentile(&times, 0.99));
    let row = Row::new(
        format!("a command starts in its sandbox, workspace of {files} files"),
        format!("median {}, p99 {}", ms(p50), ms(p99)),
    );
    if files == 0 { row.bound("<= 15 ms", p50 <= GOAL) } else { row.goal(&goals::COMMAND_START, p50 <= GOAL) }
}

fn fill(workspace: &Path, files: usize) {
    for n in 0..files {
        let directory = workspace.join(format!("d{}", n / DIRECTORY));
        if n % DIRECTORY == 0 {
            fs::create_dir(&directory).expect("a directory");
        }
        fs::write(directory.join(format!("f{n}")), "x").expect("a file");
    }
}
