//! What the memory of agents adds to their turns: `cargo bench --bench all -- memory_turn`.
//!
//! Turns of agents without entries, and turns of agents with entries of which each turn is given some; one connection, so that
//! no turn waits for another. The model is a scripted server on loopback that answers at once.
//!
//! `AGENTSVC_BENCH_AGENTS` is how many agents of each kind there are, 1,000 unless set, with 100 entries each;
//! `AGENTSVC_BENCH_SECS` is the length of each measurement, 10 unless set.

use std::time::Duration;

use crate::measure::{Row, Run, UNLIMITED, default_model, drive, goals, head, ms, percentile, post, size};
use crate::support::daemon::Daemon;
use crate::support::model_server::ModelServer;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

/// Entries of one agent.
const ENTRIES: usize = 100;
/// Agents that are made by one request.
const BATCH: usize = 1_000;
/// What a turn may take longer.
const MOST: Duration = Duration::from_millis(2);
/// What entries are made of; messages name two of them.
const WORDS: [&str; 12] = [
    "prefers", "meeting", "deploy", "server", "garden", "allergy", "coffee", "invoice", "holiday", "project",
    "daughter", "contract",
];

pub(crate) fn main() {
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let (model, count) =
        (ModelServer::fixed("A short answer of a few words."), size("AGENTSVC_BENCH_AGENTS", 1_000, 50));
    let daemon = Daemon::with(&format!("{UNLIMITED}{}", default_model(&model.base_url())));
    let (without, with) = (agents(&daemon, "without", count), agents(&daemon, "with", count));
    with.iter().for_each(|agent| fill(&daemon, agent));
    head("memory_turn");
    // Caches and connections are warm before anything counts.
    turns(&client, &daemon, &without, 1);
    turns(&client, &daemon, &with, 1);
    let secs = size("AGENTSVC_BENCH_SECS", 10, 1) as u64;
    let plain = turns(&client, &daemon, &without, secs);
    let given = turns(&client, &daemon, &with, secs);
    assert_given(&daemon, &with[0]);
    row("turns of agents without entries", &plain).print();
    row(&format!("turns of agents with {ENTRIES} entries"), &given).print();
    let added = |part: f64| percentile(&given.latencies, part).saturating_sub(percentile(&plain.latencies, part));
    let p99 = added(0.99);
    let result = format!("p50 {}, p99 {}", ms(added(0.5)), ms(p99));
    Row::new("what retrieval adds to a turn".to_owned(), result).goal(&goals::MEMORY_TURN, p99 <= MOST).print();
}

fn row(what: &str, run: &Run) -> Row {
    let (p50, p99) = (percentile(&run.latencies, 0.5), percentile(&run.latencies, 0.99));
    Row::new(what.to_owned(), format!("{:.0}/s, p50 {}, p99 {}", run.rate(), ms(p50), ms(p99)))
}

fn agents(daemon: &Daemon, name: &str, count: usize) -> Vec<String> {
    let mut ids = Vec::with_capacity(count);
    while ids.len() < count {
        let from = ids.len();
        let of = |n: usize| json!({ "manifest_toml": format!("name = \"{name}-{}\"", from + n) });
        let items: Vec<Value> = (0..BATCH.min(count - from)).map(of).collect();
        let reply = daemon.post("/api/agents/bulk", &json!({ "agents": items }));
        let body = reply.expect(reply.status);
        let rows = body["results"].as_array().expect("one result per agent");
        ids.extend(rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()));
    }
    ids
}

fn fill(daemon: &Daemon, agent: &str) {
    let content = |n: usize| {
        let words: Vec<&str> = (0..6).map(|at| WORDS[(n * 5 + at * at * 7) % WORDS.len()]).collect();
        json!({ "content": format!("{} number {n}", words.join(" ")) })
    };
    let entries: Vec<Value> = (0..ENTRIES).map(content).collect();
    daemon.post(&format!("/api/memory/agents/{agent}/import"), &json!(entries)).expect(200);
}

fn turns(client: &Runtime, daemon: &Daemon, agents: &[String], secs: u64) -> Run {
    let agents = agents.to_vec();
    client.block_on(drive(daemon.addr, 1, Duration::from_secs(secs), 200, move |_, n| {
        let (agent, one, other) = (&agents[n % agents.len()], WORDS[n % WORDS.len()], WORDS[(n + 5) % WORDS.len()]);
        let body = format!(r#"{{"message":"What about the {one} and the {other}?"}}"#);
        post(&format!("/api/agents/{agent}/message"), &body)
    }))
}

/// A figure counts only if turns were given entries.
fn assert_given(daemon: &Daemon, agent: &str) {
    let traces = daemon.get(&format!("/api/agents/{agent}/traces?limit=1")).expect(200);
    assert!(traces["traces"][0]["memories"].is_array(), "no entries were given: {traces}");
}
