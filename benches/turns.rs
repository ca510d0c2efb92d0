//! Turns with tools, streamed tokens and parked turns: `cargo bench --bench all -- turns`.
//!
//! The model is a scripted server on loopback that answers at once; the tools are `system_time` with different
//! arguments. `AGENTSVC_BENCH_SECS` is the length of each measurement, 5 unless set.

use std::time::{Duration, Instant};

use crate::measure::{
    Connection, Row, UNLIMITED, default_model, drive, head, metric, ms, percentile, post, resident_bytes, size,
};
use crate::support::daemon::Daemon;
use crate::support::model_server::{Gate, ModelServer, Received, Reply};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

/// Arguments that differ, so that the loop guard lets seven calls of one turn run.
const ARGUMENTS: [&str; 7] = [
    "{}",
    r#"{"format":null}"#,
    r#"{"format":"rfc3339"}"#,
    r#"{"format":"date"}"#,
    r#"{"format":"time"}"#,
    r#"{"format":"weekday"}"#,
    r#"{"format":"unix_seconds"}"#,
];
pub(crate) fn main() {
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    head("turns");
    for calls in [0, 1, 7] {
        with_tools(&client, calls);
    }
    streamed_tokens(&client);
    let turns = size("AGENTSVC_BENCH_PARKED", 10_000, 1_000);
    parked(&client, "waiting for a slot of their provider", turns, 1);
    parked(&client, "each with its model call out", turns, turns);
}

/// How long each measurement takes.
fn time() -> Duration {
    Duration::from_secs(size("AGENTSVC_BENCH_SECS", 5, 1) as u64)
}

/// A daemon that limits nobody and asks `model`.
fn daemon(model: &ModelServer, more: &str) -> Daemon {
    Daemon::with(&format!("{UNLIMITED}{}{more}", default_model(&model.base_url())))
}

/// The ids of new agents that may use tools.
fn agents(daemon: &Daemon, count: usize) -> Vec<String> {
    let manifest = |n| format!("name = \"n-{n}\"\n[capabilities]\ntools = [\"system_time\"]\n");
    let items: Vec<_> = (0..count).map(|n| json!({ "manifest_toml": manifest(n) })).collect();
    let reply = daemon.post("/api/agents/bulk", &json!({ "agents": items }));
    let body = reply.expect(reply.status);
    let rows = body["results"].as_array().expect("one result per agent");
    rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
}

/// Asks for the tools first and answers once it has their results.
fn answer(request: &Received, calls: usize) -> Reply {
    let is_question = request.messages().last().is_some_and(|message| message["role"] == "user");
    if calls == 0 || !is_question {
        return Reply::text("A short answer of a few words.");
    }
    let ids: Vec<String> = (0..calls).map(|n| format!("call-{n}")).collect();
    let calls: Vec<_> = ids.iter().zip(ARGUMENTS).map(|(id, input)| (&**id, "system_time", input)).collect();
    Reply::calls(&calls)
}

/// Whole turns in which the model asks for so many tools at once.
fn with_tools(client: &Runtime, calls: usize) {
    let model = ModelServer::start();
    model.respond(move |request| answer(request, calls));
    let daemon = daemon(&model, "");
    let agents = agents(&daemon, 1_000);
    let run = client.block_on(drive(daemon.addr, 64, time(), 200, move |connection, n| {
        let agent = &agents[(n * 64 + connection) % agents.len()];
        post(&format!("/api/agents/{agent}/message"), r#"{"message":"What time is it?"}"#)
    }));
    let (p50, p99) = (percentile(&run.latencies, 0.5), percentile(&run.latencies, 0.99));
    let result = format!("{:.0}/s, p50 {}, p99 {}", run.rate(), ms(p50), ms(p99));
    Row::new(format!("turns with {calls} tool calls, durable, 64 connections"), result).print();
}

/// What the daemon adds to each token of a long stream.
fn streamed_tokens(client: &Runtime) {
    let model = ModelServer::start();
    let daemon = daemon(&model, "");
    let agent = agents(&daemon, 1).remove(0);
    let request = post(&format!("/api/agents/{agent}/message/stream"), r#"{"message":"hello"}"#);
    let words = 1_000;
    let text: Vec<String> = (0..words).map(|n| format!("w{n}x")).collect();
    let gate = Gate::default();
    model.push(Reply::text(text.join(" ")).gated(&gate));
    let mut added: Vec<Duration> = client.block_on(async {
        let mut wire = Connection::open(daemon.addr).await.expect("the daemon takes connections");
        wire.send(&request).await.expect("the daemon reads");
        model.received(1).await;
        // The role first.
        gate.pass(1);
        tokio::time::sleep(Duration::from_millis(5)).await;
        let mut added = Vec::with_capacity(words);
        for word in &text {
            let begun = Instant::now();
            gate.pass(1);
            wire.read_to(word.as_bytes()).await.expect("the daemon streams");
            added.push(begun.elapsed());
        }
        gate.open();
        added
    });
    added.sort_unstable();
    let (p50, p99) = (percentile(&added, 0.5), percentile(&added, 0.99));
    Row::new("each streamed token, both hops", format!("p50 {}, p99 {}", ms(p50), ms(p99))).print();
}

/// Memory of turns that wait. Nobody listens: the clients go as soon as their message is taken.
fn parked(client: &Runtime, how: &str, turns: usize, provider_calls: usize) {
    let (model, gate) = (ModelServer::start(), Gate::default());
    let held = gate.clone();
    model.respond(move |_| Reply::text("late").gated(&held));
    let daemon = daemon(&model, &format!("[queue.concurrency]\nprovider_calls = {provider_calls}\n"));
    let agents = agents(&daemon, turns);
    // What making the agents took is given back to the system a moment later.
    std::thread::sleep(Duration::from_secs(3));
    let before = resident_bytes(daemon.pid());
    client.block_on(async {
        for agent in &agents {
            let request = post(&format!("/api/agents/{agent}/message/stream"), r#"{"message":"hello there"}"#);
            let mut wire = Connection::open(daemon.addr).await.expect("the daemon takes connections");
            wire.send(&request).await.expect("the daemon reads");
            wire.read_to(b"\r\n\r\n").await.expect("the message is taken");
        }
    });
    if provider_calls > 1 {
        model.wait_for_requests(turns);
    }
    // The metrics are those of the last beat.
    let open = || metric(&daemon.get("/api/metrics").text(), "agentsvc_turns_open") as usize == turns;
    let is_parked = (0..100).any(|_| {
        let is_parked = open();
        if !is_parked {
            std::thread::sleep(Duration::from_millis(50));
        }
        is_parked
    });
    let after = resident_bytes(daemon.pid());
    let more = after.saturating_sub(before);
    let result = format!("{} MiB in all, {} B each", more >> 20, more / turns as u64);
    Row::new(format!("{turns} parked turns, {how}"), result).bound("all parked", is_parked).print();
    gate.open();
}
