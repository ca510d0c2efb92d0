//! How long a kill and a start, a snapshot and a restore take with a large world: `cargo bench --bench all -- snapshot_restore`.
//! `AGENTSVC_BENCH_AGENTS` sets the size (1,000,000): as many sessions, and a tenth of it in triggers.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::measure::{Row, UNLIMITED, goals, head, ms, size};
use crate::support::daemon::{command, text};
use crate::support::http::Client;
use serde_json::{Value, json};

/// Agents of one request.
const BULK: usize = 10_000;
/// Connections that make triggers.
const CONNECTIONS: usize = 32;
/// How long a start may take before it is given up.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn main() {
    head("snapshot_restore");
    let agents = size("AGENTSVC_BENCH_AGENTS", 1_000_000, 20_000);
    let triggers = agents / 10;
    let mut harness = Harness::start();
    let some = harness.fill(agents, triggers);
    let world = format!("{agents} agents and sessions, {triggers} triggers");

    let quiet = watched(&harness.client, &some, || thread::sleep(Duration::from_secs(3)));
    let ((took, taken), busy) = watched(&harness.client, &some, || {
        let begun = Instant::now();
        let taken = harness.client.post("/api/world/snapshots", &json!({})).expect(201);
        (begun.elapsed(), taken)
    });
    let (rows, file, plain) = (&taken["counts"]["rows"], mib(&taken["size_bytes"]), mib(&taken["counts"]["bytes"]));
    let result = format!("{} ({rows} rows, {plain:.0} MiB, {file:.0} MiB in the file)", ms(took));
    let what = format!("snapshot of {world}, while it runs");
    Row::new(what, result).goal(&goals::SNAPSHOT, took <= Duration::from_secs(10)).print();
    Row::new("longest agent read meanwhile", busy.to_string())
        .beside(format!("in 3 s with nothing else to do {}", quiet.1))
        .goal(&goals::SNAPSHOT_PAUSE, busy.longest <= Duration::from_millis(10))
        .print();

    harness.kill();
    let (first, health) = harness.start_again(&some);
    let what = format!("kill -9 of {world}, start, first agent read");
    Row::new(what, ms(first)).goal(&goals::COME_BACK, first <= Duration::from_secs(3)).print();
    let is_good = health <= Duration::from_millis(50);
    Row::new("longest health meanwhile", ms(health)).goal(&goals::COME_BACK_HEALTH, is_good).print();

    let begun = Instant::now();
    let restored = harness.client.poke(&format!("/api/world/snapshots/{}/restore", text(&taken["id"]))).expect(200);
    let result = format!("{} (no world for {} ms)", ms(begun.elapsed()), restored["pause_ms"]);
    Row::new("restore of that snapshot while it runs, with one of the world before", result).print();
}

fn mib(bytes: &Value) -> f64 {
    bytes.as_f64().unwrap_or_default() / f64::from(1 << 20)
}

/// Reads of one agent, one after another.
#[derive(Default)]
struct Reads {
    count: usize,
    longest: Duration,
    above_10_ms: usize,
    /// What the longest step of the world meanwhile took at most; empty when there was none.
    step: String,
}

impl std::fmt::Display for Reads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let step = if self.step.is_empty() { "none" } else { self.step.as_str() };
        let Self { longest, above_10_ms, count, .. } = self;
        write!(f, "{} ({above_10_ms} of {count} above 10 ms; longest step {step})", ms(*longest))
    }
}

/// The steps of the world so far, by how long they took: an upper bound in seconds, and how many took as long or less.
/// The longest that `GET /api/world` knows is that of a whole minute, in which the world was made.
fn steps(client: &Client) -> Vec<(String, u64)> {
    let page = client.get("/api/metrics").text();
    let bucket = |line: &str| {
        let rest = line.strip_prefix("agentsvc_world_step_duration_seconds_bucket{le=\"")?;
        let (bound, count) = rest.split_once("\"} ")?;
        Some((bound.to_owned(), count.trim().parse().ok()?))
    };
    page.lines().filter_map(bucket).collect()
}

/// How long the longest step between the two took at most.
fn longest_step(before: &[(String, u64)], after: &[(String, u64)]) -> String {
    let (mut shorter, mut longest) = (0, String::new());
    for ((bound, before), (_, after)) in before.iter().zip(after) {
        let steps = after.saturating_sub(*before);
        if steps > shorter {
            longest = match bound.parse::<f64>() {
                Ok(secs) if secs.is_finite() => format!("<= {}", ms(Duration::from_secs_f64(secs))),
                _ => "above all bounds".to_owned(),
            };
        }
        shorter = steps;
    }
    longest
}

/// True from its end on, however that comes: who asks until then does not ask for ever when the other one panics.
#[derive(Default)]
struct Done(AtomicBool);

/// The end of what sets it.
struct Setter<'a>(&'a Done);

impl Done {
    fn at_the_end(&self) -> Setter<'_> {
        Setter(self)
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Drop for Setter<'_> {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Release);
    }
}

/// Does `work` while an agent is read all the time, and looks at how long the world's steps took meanwhile.
fn watched<T>(client: &Client, agent: &str, work: impl FnOnce() -> T) -> (T, Reads) {
    let done = Done::default();
    let path = format!("/api/agents/{agent}");
    let before = steps(client);
    let (result, reads) = thread::scope(|scope| {
        let end = done.at_the_end();
        let reading = scope.spawn(|| {
            let mut reads = Reads::default();
            while !done.is_set() {
                let begun = Instant::now();
                client.get(&path).expect(200);
                let took = begun.elapsed();
                reads.count += 1;
                reads.longest = reads.longest.max(took);
                reads.above_10_ms += usize::from(took > Duration::from_millis(10));
                thread::sleep(Duration::from_micros(500));
            }
            reads
        });
        let result = work();
        drop(end);
        (result, reading.join().expect("the reader does not panic"))
    });
    (result, Reads { step: longest_step(&before, &steps(client)), ..reads })
}

/// A daemon at a fixed port, so that it can be asked from the moment of its start on.
struct Harness {
    home: tempfile::TempDir,
    client: Client,
    child: Child,
}

impl Harness {
    fn start() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        // The port is free now and very likely still is later.
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let addr: SocketAddr = listener.local_addr().expect("a bound socket has an address");
        drop(listener);
        let config = format!("api_listen = \"{addr}\"\n{UNLIMITED}");
        fs::write(home.path().join("config.toml"), config).expect("a file is written");
        let child = spawn(&home);
        let harness = Self { home, client: Client::new(addr), child };
        let begun = Instant::now();
        while harness.status_of("/api/agents?limit=1") != Some(200) {
            assert!(begun.elapsed() < PATIENCE, "the daemon does not answer");
            thread::sleep(Duration::from_millis(1));
        }
        harness
    }

    fn status_of(&self, path: &str) -> Option<u16> {
        self.client.try_send("GET", path, &[], None).ok().map(|reply| reply.status)
    }

    /// Makes the world; gives one of its agents.
    fn fill(&self, agents: usize, triggers: usize) -> String {
        let mut ids = Vec::with_capacity(agents);
        for first in (0..agents).step_by(BULK) {
            let items: Vec<_> = (first..agents.min(first + BULK))
                .map(|n| json!({ "manifest_toml": format!("name = \"agent-{n}\"") }))
                .collect();
            let made = self.client.post("/api/agents/bulk", &json!({ "agents": items })).expect(200);
            let results = made["results"].as_array().expect("results").iter();
            ids.extend(results.map(|result| text(&result["agent_id"])));
        }
        thread::scope(|scope| {
            for part in 0..CONNECTIONS {
                let (ids, client) = (&ids, self.client.clone());
                scope.spawn(move || {
                    for n in (part..triggers).step_by(CONNECTIONS) {
                        let pattern = json!({ "agent_spawned": { "name_pattern": format!("web-{n}-*") } });
                        let body =
                            json!({ "agent_id": ids[n], "pattern": pattern, "prompt_template": "Look: {{event}}" });
                        client.post("/api/triggers", &body).expect(201);
                    }
                });
            }
        });
        ids.swap_remove(agents / 2)
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts again; the time from exec to the first read of `agent`, and the longest that one answer of health
    /// took on the way, from when the process listens.
    fn start_again(&mut self, agent: &str) -> (Duration, Duration) {
        let begun = Instant::now();
        self.child = spawn(&self.home);
        let done = Done::default();
        let path = format!("/api/agents/{agent}");
        thread::scope(|scope| {
            let end = done.at_the_end();
            let healthy = scope.spawn(|| {
                let mut longest = Duration::ZERO;
                while self.status_of("/api/health") != Some(200) {
                    assert!(begun.elapsed() < PATIENCE, "the daemon does not answer");
                    thread::sleep(Duration::from_micros(200));
                }
                while !done.is_set() {
                    let asked = Instant::now();
                    assert_eq!(self.status_of("/api/health"), Some(200));
                    longest = longest.max(asked.elapsed());
                    thread::sleep(Duration::from_millis(1));
                }
                longest
            });
            while self.status_of(&path) != Some(200) {
                assert!(begun.elapsed() < PATIENCE, "the daemon does not answer");
                thread::sleep(Duration::from_millis(1));
            }
            let first = begun.elapsed();
            drop(end);
            (first, healthy.join().expect("the reader does not panic"))
        })
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(home: &tempfile::TempDir) -> Child {
    let mut command = command(home.path());
    command.arg("start").stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the binary starts")
}
