//! What a hook of a plugin adds to a turn beside its own time: `cargo bench --bench all -- plugins`.
//!
//! Turns of agents without a plugin, of agents with a plugin whose process stays, and of agents with one that is started for each
//! call, in turns over one connection. The hook is this program, started with `--hook`; it answers at once, and is asked over
//! its pipes without a daemon, too. The model is a scripted server on loopback that answers at once.
//!
//! `AGENTSVC_BENCH_CALLS` is how many turns of each kind there are, 5,000 unless set; one in 20 as many with a process for each
//! call.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::measure::{Connection, Row, UNLIMITED, default_model, goals, head, ms, percentile, post, size};
use crate::support::daemon::Daemon;
use crate::support::model_server::ModelServer;
use crate::support::until;
use serde_json::{Value, json};
use tokio::runtime::Builder;

/// The word that makes this program a hook.
const HOOK: &str = "--hook";
/// Agents of each kind: no session becomes long.
const AGENTS: usize = 100;
/// What a turn may take longer than without the hook, beside the hook's own time.
const MOST: Duration = Duration::from_millis(2);
/// The kinds of agents; the last two are also the names of their plugins.
const KINDS: [&str; 3] = ["without", "stays", "once"];

/// Is this process a hook? A native one has no arguments and knows itself by its name.
pub(crate) fn is_hook() -> bool {
    let program = std::env::args().next().unwrap_or_default();
    Path::new(&program).file_name().is_some_and(|name| name == "ingest") || std::env::args().any(|word| word == HOOK)
}

pub(crate) fn main() {
    let model = ModelServer::fixed("A short answer of a few words.");
    let config = format!(
        "{UNLIMITED}{}[context_engine]\nplugin_stack = [\"stays\", \"once\"]\n",
        default_model(&model.base_url())
    );
    let mut daemon = Daemon::with(&config);
    for name in &KINDS[1..] {
        write(&daemon.home().join("plugins").join(name), name);
    }
    daemon.restart();
    until("the plugins are read", || (daemon.get("/api/plugins").expect(200)["total"] == 2).then_some(()));
    let agents = KINDS.map(|kind| agents(&daemon, kind));
    head("plugins");
    let times = measured(&daemon, &agents);
    report(&daemon, times);
}

/// A hook: answers each line of its input at once, and ends with it.
pub(crate) fn serve() {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let input: Value = serde_json::from_str(&line.expect("a line of text")).expect("the input is JSON");
        let content = format!("A note on {}", input["message"].as_str().unwrap_or_default());
        let answer = json!({ "type": "ingest_result", "memories": [{ "content": content }] });
        writeln!(output, "{answer}").expect("the daemon reads");
        output.flush().expect("the daemon reads");
    }
}

/// A plugin with this program as its hook.
fn write(folder: &Path, name: &str) {
    let names: Vec<String> = (0..AGENTS).map(|n| format!("{name}-{n}")).collect();
    let manifest = format!(
        "name = {name:?}\n[hooks]\nruntime = \"native\"\ningest = \"hooks/ingest\"\npersistent_subprocess = {}\n\
         only_for_agent_ids = {names:?}\n",
        name == "stays"
    );
    fs::create_dir_all(folder.join("hooks")).expect("the home can be written");
    fs::write(folder.join("plugin.toml"), manifest).expect("the home can be written");
    let program = std::env::current_exe().expect("this program has a path");
    fs::copy(program, folder.join("hooks/ingest")).expect("the home can be written");
}

fn agents(daemon: &Daemon, kind: &str) -> Vec<String> {
    let of = |n: usize| json!({ "manifest_toml": format!("name = \"{kind}-{n}\"") });
    let items: Vec<Value> = (0..AGENTS).map(of).collect();
    let reply = daemon.post("/api/agents/bulk", &json!({ "agents": items }));
    let body = reply.expect(reply.status);
    let rows = body["results"].as_array().expect("one result per agent");
    rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
}

/// The times of turns of each kind, and those of the hook alone.
fn measured(daemon: &Daemon, agents: &[Vec<String>; 3]) -> [Vec<Duration>; 4] {
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let rounds = size("AGENTSVC_BENCH_CALLS", 5_000, 200);
    let (mut direct, mut times) = (Direct::start(), [const { Vec::new() }; 4]);
    client.block_on(async {
        let mut wire = Connection::open(daemon.addr).await.expect("the daemon takes connections");
        // Caches, connections and the process are warm before anything counts.
        for round in 0..rounds + rounds / 20 {
            let counts = round >= rounds / 20;
            for (kind, agents) in agents.iter().enumerate() {
                if kind == 2 && round % 20 != 0 {
                    continue;
                }
                let path = format!("/api/agents/{}/message", agents[round % agents.len()]);
                let bytes = post(&path, &json!({ "message": format!("What about {round}?") }).to_string());
                let begun = Instant::now();
                let (status, body) = wire.call(&bytes).await.expect("the daemon answers");
                assert_eq!(status, 200, "{}", String::from_utf8_lossy(body));
                if counts {
                    times[kind].push(begun.elapsed());
                }
            }
            let own = direct.call();
            if counts {
                times[3].push(own);
            }
        }
    });
    times.iter_mut().for_each(|times| times.sort_unstable());
    times
}

fn report(daemon: &Daemon, [without, stays, once, own]: [Vec<Duration>; 4]) {
    for name in &KINDS[1..] {
        let health = daemon.get(&format!("/api/plugins/{name}/health")).expect(200);
        let hook = &health["hooks"]["ingest"];
        // A figure counts only if the hook was asked.
        assert!(hook["calls"].as_u64() > Some(0) && hook["errors"] == 0, "{health}");
    }
    let of = |times: &[Duration]| format!("{} / {}", ms(percentile(times, 0.5)), ms(percentile(times, 0.99)));
    let added = |times: &[Duration], part| {
        percentile(times, part).saturating_sub(percentile(&without, part) + percentile(&own, part))
    };
    let p99 = added(&stays, 0.99);
    Row::new(
        "a hook whose process stays: added to a turn beside its own time",
        format!("median {}, p99 {}", ms(added(&stays, 0.5)), ms(p99)),
    )
    .beside(format!("median / p99: with {}, without {}, hook alone {}", of(&stays), of(&without), of(&own)))
    .goal(&goals::PLUGIN_HOOK, p99 <= MOST)
    .print();
    Row::new("a hook that is started for each call: added to a turn", format!("median {}", ms(added(&once, 0.5))))
        .beside(format!("median / p99: with {}", of(&once)))
        .print();
}

/// The hook, asked over its pipes without a daemon.
struct Direct {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Direct {
    fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.arg(HOOK).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program starts");
        let input = child.stdin.take().expect("the input is a pipe");
        let output = BufReader::new(child.stdout.take().expect("the output is a pipe"));
        Self { child, input, output }
    }

    fn call(&mut self) -> Duration {
        let begun = Instant::now();
        let message =
            json!({ "type": "ingest", "agent_id": "a", "session_id": "s", "message": "What?", "peer_id": null });
        writeln!(self.input, "{message}").expect("the hook reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the hook answers");
        begun.elapsed()
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
