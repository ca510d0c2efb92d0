//! The daemon under load over HTTP, beside a bare hyper server and a bare store in the same run:
//! `cargo bench --bench all -- http_load`, or some of its parts: `cargo bench --bench all -- http_load reads creates`.
//!
//! The client is one thread of hand-written HTTP/1.1 loops; the bare server is a process of its own (this program,
//! started with `--hello`), as the daemon is. `AGENTSVC_BENCH_SECS` is the length of each measurement, 5 unless set.

mod bare_store;
mod hello;
mod subscribers;

use std::time::{Duration, Instant};

use crate::measure::{
    Connection, Profile, Row, UNLIMITED, default_model, drive, get, goals, head, is_wanted, middle, ms, percentile,
    post, size,
};
use crate::support::daemon::Daemon;
use crate::support::model_server::{Gate, ModelServer, Reply};
use bare_store::{Pattern, Written};
use hello::Hello;
pub(crate) use hello::{is_hello, serve as hello};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

/// Measures one part.
type Measure = fn(&Runtime);

/// A part's name on the command line, and what measures it.
const PARTS: [(&str, Measure); 5] = [
    ("reads", reads),
    ("creates", creates),
    ("turns", turns),
    ("first_tokens", first_tokens),
    ("subscribers", subscribers::measure),
];

pub(crate) fn main() {
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    head("http_load");
    for (_, measure) in PARTS.into_iter().filter(|(part, _)| is_wanted(part)) {
        measure(&client);
    }
}

/// How long each measurement takes.
fn time() -> Duration {
    Duration::from_secs(size("AGENTSVC_BENCH_SECS", 5, 1) as u64)
}

/// A daemon that limits nobody.
fn daemon(config: &str) -> Daemon {
    Daemon::with(&format!("{UNLIMITED}{config}"))
}

/// Reading an agent, as a share of what the bare server does in the same run.
fn reads(client: &Runtime) {
    let (hello, daemon) = (Hello::start(), daemon(""));
    let path = format!("/api/agents/{}", daemon.agent("read"));
    let (mut bare, mut read) = (Vec::new(), Vec::new());
    let _profile = Profile::of(daemon.pid(), "reads");
    // In turns, so that a slow moment of the machine meets both.
    for _ in 0..3 {
        let slice = time() / 2;
        bare.push(client.block_on(drive(hello.addr(), 32, slice, 200, |_, _| get("/"))).rate());
        let path = path.clone();
        read.push(client.block_on(drive(daemon.addr, 32, slice, 200, move |_, _| get(&path))).rate());
    }
    let (bare, read) = (middle(bare), middle(read));
    let share = read / bare * 100.0;
    Row::new(goals::READ.what, format!("{read:.0}/s = {share:.0} %"))
        .beside(format!("bare hyper {bare:.0}/s"))
        .goal(&goals::READ, share >= 35.0)
        .print();
}

/// Durable creation.
fn creates(client: &Runtime) {
    let daemon = daemon("");
    let before = Written::of(&daemon);
    let profile = Profile::of(daemon.pid(), "creates");
    let run = client.block_on(drive(daemon.addr, 64, time(), 201, |connection, n| {
        let manifest = format!("name = \"a-{connection}-{n}\"\ndescription = \"One of many\"\n");
        post("/api/agents", &json!({ "manifest_toml": manifest }).to_string())
    }));
    drop(profile);
    let written = Written::of(&daemon).since(&before);
    drop(daemon);
    let pattern = written.pattern(run.latencies.len(), 1);
    let bare = client.block_on(bare_store::drive(64, time(), &pattern));
    Row::new(goals::CREATE.what, format!("{:.0}/s, p99 {}", run.rate(), ms(percentile(&run.latencies, 0.99))))
        .beside(beside_store(run.rate(), bare.rate(), &pattern, &written))
        .goal(&goals::CREATE, run.rate() >= 15_000.0)
        .print();
}

/// What the bare store does with the same records.
fn beside_store(rate: f64, bare: f64, pattern: &Pattern, written: &Written) -> String {
    let share = rate / bare * 100.0;
    format!(
        "bare fjall {bare:.0}/s, of which {share:.0} % ({}; {:.0} syncs/s here)",
        pattern,
        written.batches / written.secs
    )
}

/// Whole turns against a model that answers at once.
fn turns(client: &Runtime) {
    let model = ModelServer::fixed("A short answer of a few words.");
    let daemon = daemon(&default_model(&model.base_url()));
    let agents = many_agents(&daemon, 1_000);
    let before = Written::of(&daemon);
    let profile = Profile::of(daemon.pid(), "turns");
    let run = client.block_on(drive(daemon.addr, 64, time() * 2, 200, move |connection, n| {
        let agent = &agents[(n * 64 + connection) % agents.len()];
        post(&format!("/api/agents/{agent}/message"), r#"{"message":"What is the answer?"}"#)
    }));
    drop(profile);
    let written = Written::of(&daemon).since(&before);
    drop(daemon);
    // A turn is durable twice before its answer leaves: with the message, and with the answer.
    let pattern = written.pattern(run.latencies.len(), 2);
    let bare = client.block_on(bare_store::drive(64, time(), &pattern));
    let (p50, p99) = (percentile(&run.latencies, 0.5), percentile(&run.latencies, 0.99));
    Row::new(goals::TURN.what, format!("{:.0}/s, p50 {}, p99 {}", run.rate(), ms(p50), ms(p99)))
        .beside(beside_store(run.rate(), bare.rate(), &pattern, &written))
        .goal(&goals::TURN, run.rate() >= 4_000.0 && p99 <= Duration::from_millis(50))
        .print();
}

/// What the daemon adds between the model's first token and the client.
fn first_tokens(client: &Runtime) {
    let model = ModelServer::start();
    let daemon = daemon(&default_model(&model.base_url()));
    let agent = many_agents(&daemon, 1).remove(0);
    let request = post(&format!("/api/agents/{agent}/message/stream"), r#"{"message":"hello"}"#);
    let mut added: Vec<Duration> = (0..size("AGENTSVC_BENCH_TOKENS", 500, 100))
        .map(|n| {
            let gate = Gate::default();
            model.push(Reply::text("one two three").gated(&gate));
            client.block_on(async {
                let mut wire = Connection::open(daemon.addr).await.expect("the daemon takes connections");
                wire.send(&request).await.expect("the daemon reads");
                model.received(n + 1).await;
                // The role first; the word itself is what is timed.
                gate.pass(1);
                tokio::time::sleep(Duration::from_millis(2)).await;
                let begun = Instant::now();
                gate.pass(1);
                wire.read_to(b"event: chunk").await.expect("the daemon streams");
                let added = begun.elapsed();
                gate.open();
                wire.read_to(b"event: done").await.expect("the daemon ends the stream");
                added
            })
        })
        .collect();
    added.sort_unstable();
    let p99 = percentile(&added, 0.99);
    Row::new(
        "first streamed token after the model's, both hops",
        format!("p50 {}, p99 {}", ms(percentile(&added, 0.5)), ms(p99)),
    )
    .goal(&goals::FIRST_TOKEN, p99 <= Duration::from_millis(1))
    .print();
}

/// The ids of new agents.
fn many_agents(daemon: &Daemon, count: usize) -> Vec<String> {
    let items: Vec<_> = (0..count).map(|n| json!({ "manifest_toml": format!("name = \"n-{n}\"") })).collect();
    let reply = daemon.post("/api/agents/bulk", &json!({ "agents": items }));
    let body = reply.expect(reply.status);
    let rows = body["results"].as_array().expect("one result per agent");
    rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
}
