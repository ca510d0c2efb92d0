//! Searching the memory entries of agents: `cargo bench --bench all -- memory_search`.
//!
//! Fills agents with entries over HTTP, and measures adding single entries durably, searches of one agent and of all, the
//! memory that it costs, and an index that is built again while searches go on.
//!
//! `AGENTSVC_BENCH_ENTRIES` is how many entries there are, 1,000,000 unless set, 100 for each agent.

use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::measure::{
    Row, Run, UNLIMITED, bytes_below, drive, get, goals, head, metric, ms, percentile, post, resident_bytes, size,
};
use crate::support::daemon::Daemon;
use serde_json::Value;

/// Entries of one agent.
const OF_AGENT: usize = 100;
/// Agents that are made by one request.
const AGENTS: usize = 1_000;
/// How long each load lasts.
const TIME: Duration = Duration::from_secs(5);
/// How long the index may take to be built.
const PATIENCE: Duration = Duration::from_secs(600);
/// What entries are made of. With their numbers there are as many different words as in a text of such length.
const WORDS: [&str; 24] = [
    "prefers", "meeting", "deploy", "server", "garden", "allergy", "coffee", "invoice", "holiday", "project",
    "daughter", "contract", "database", "bicycle", "kitchen", "flight", "report", "teacher", "window", "backup",
    "doctor", "music", "train", "customer",
];

/// The `n`-th entry of all.
fn content(n: usize) -> String {
    let mut text = String::new();
    let mut state = n as u64 + 1;
    for place in 0..12 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = WORDS[(state >> 33) as usize % WORDS.len()];
        // Few words are common, most are rare.
        let _ = match place % 3 {
            0 => write!(text, "{word} "),
            1 => write!(text, "{word}{} ", (state >> 40) % 100),
            _ => write!(text, "{word}{} ", (state >> 40) % 20_000),
        };
    }
    text
}

pub(crate) fn main() {
    let entries = size("AGENTSVC_BENCH_ENTRIES", 1_000_000, 20_000);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let daemon = Daemon::with(UNLIMITED);
    let agents = fill(&daemon, entries);
    head("memory_search");

    let asked = agents.clone();
    let run = load(&runtime, &daemon, move |connection, n| {
        let place = n * 7 + connection * 131;
        let (agent, word) = (&asked[place % asked.len()], WORDS[place % WORDS.len()]);
        get(&format!("/api/memory/agents/{agent}/search?q={word}%20report"))
    });
    let p99 = percentile(&run.latencies, 0.99);
    row(
        &format!("search in one of {} agents, {OF_AGENT} entries each, p99", agents.len()),
        &run,
        &goals::MEMORY_AGENT,
        p99,
        5,
    );

    let begun = Instant::now();
    wait_for_index(&daemon, entries);
    let built = begun.elapsed();
    let result = format!("{:.1} s", built.as_secs_f64());
    Row::new(format!("index of {entries} entries built while searches go on"), result)
        .goal(&goals::MEMORY_REBUILD, built <= Duration::from_secs(60))
        .print();

    let run = search_all(&runtime, &daemon);
    let p99 = percentile(&run.latencies, 0.99);
    row(&format!("search in all {entries} entries, p99"), &run, &goals::MEMORY_GLOBAL, p99, 50);

    let (resident, fewer) = (resident_bytes(daemon.pid()), entries / 10);
    let small = resident_with(&runtime, fewer);
    let each = resident.saturating_sub(small) as f64 / (entries - fewer) as f64;
    let result = format!("{each:.0} B ({} MiB with {fewer}, {} MiB with all)", small >> 20, resident >> 20);
    Row::new("resident memory per entry, with the index in use", result)
        .goal(&goals::MEMORY_BYTES, each <= 64.0)
        .print();
    let bytes = bytes_below(&daemon.home().join("data/memory-index")) / entries as u64;
    Row::new("bytes of the index per entry", format!("{bytes} B")).print();

    add(&runtime, &daemon);
}

/// Searches all entries for words of different frequency.
fn search_all(runtime: &tokio::runtime::Runtime, daemon: &Daemon) -> Run {
    load(runtime, daemon, |connection, n| {
        let place = n * 7 + connection * 131;
        let (word, other) = (WORDS[place % WORDS.len()], WORDS[(place / 3) % WORDS.len()]);
        get(&format!("/api/memory/search?q={word}{}%20{other}", place % 20_000))
    })
}

/// Resident bytes of a daemon with so many entries after the same searches: its caches are as full, so that what another one
/// holds more is for its entries.
fn resident_with(runtime: &tokio::runtime::Runtime, entries: usize) -> u64 {
    let daemon = Daemon::with(UNLIMITED);
    fill(&daemon, entries);
    wait_for_index(&daemon, entries);
    search_all(runtime, &daemon);
    resident_bytes(daemon.pid())
}

/// Adds single entries, each durable before its answer, while the index follows.
fn add(runtime: &tokio::runtime::Runtime, daemon: &Daemon) {
    let agents: Vec<String> = (0..64).map(|n| daemon.agent(&format!("adder-{n}"))).collect();
    let run = runtime.block_on(drive(daemon.addr, 64, TIME, 201, move |connection, n| {
        let text = content(1 << 40 | connection << 24 | n);
        post("/api/memory", &format!(r#"{{"agent_id":"{}","content":"{text}"}}"#, agents[connection]))
    }));
    let result = format!("{:.0}/s, p99 {}", run.rate(), ms(percentile(&run.latencies, 0.99)));
    Row::new("adding entries, durable, 64 connections", result).goal(&goals::MEMORY_ADD, run.rate() >= 5_000.0).print();
}

fn load(
    runtime: &tokio::runtime::Runtime,
    daemon: &Daemon,
    request: impl Fn(usize, usize) -> Vec<u8> + Clone + 'static,
) -> Run {
    runtime.block_on(drive(daemon.addr, 2, TIME, 200, request))
}

fn row(what: &str, run: &Run, goal: &'static goals::Goal, p99: Duration, most_ms: u64) {
    let result = format!("{}, {:.0}/s", ms(p99), run.rate());
    Row::new(what.to_owned(), result).goal(goal, p99 <= Duration::from_millis(most_ms)).print();
}

/// Makes agents and imports their entries. Gives the agents.
fn fill(daemon: &Daemon, entries: usize) -> Vec<String> {
    let count = entries.div_ceil(OF_AGENT);
    let mut agents = Vec::with_capacity(count);
    for batch in 0..count.div_ceil(AGENTS) {
        let items: Vec<String> = (0..AGENTS.min(count - batch * AGENTS))
            .map(|n| format!(r#"{{"manifest_toml":"name = \"m-{batch}-{n}\""}}"#))
            .collect();
        let body = format!(r#"{{"agents":[{}]}}"#, items.join(","));
        let reply = daemon.send("POST", "/api/agents/bulk", &[], Some(body.as_bytes()));
        let made: Value = serde_json::from_slice(&reply.body).expect("JSON");
        let results = made["results"].as_array().expect("results");
        agents.extend(results.iter().map(|made| made["agent_id"].as_str().expect("an id").to_owned()));
    }
    for (number, agent) in agents.iter().enumerate() {
        let items: Vec<String> =
            (0..OF_AGENT).map(|n| format!(r#"{{"content":"{}"}}"#, content(number * OF_AGENT + n))).collect();
        let body = format!("[{}]", items.join(","));
        let path = format!("/api/memory/agents/{agent}/import");
        let reply = daemon.send("POST", &path, &[], Some(body.as_bytes()));
        assert!(reply.status < 300, "{}", reply.text());
    }
    agents
}

/// Searches until the index knows of all entries.
fn wait_for_index(daemon: &Daemon, entries: usize) {
    let begun = Instant::now();
    loop {
        daemon.get("/api/memory/search?q=report").expect(200);
        let page = daemon.get("/api/metrics").text();
        if metric(&page, "agentsvc_memory_index_entries") >= entries as f64 {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "the index was not built");
        std::thread::sleep(Duration::from_millis(100));
    }
}
