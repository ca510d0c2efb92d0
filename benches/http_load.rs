//! The daemon under load over HTTP, beside a bare hyper server in the same run: `cargo bench --bench http_load`.
//!
//! The client is one thread of hand-written HTTP/1.1 loops; the bare server is a process of its own (this program,
//! started with `--hello`), as the daemon is. `AGENTSVC_BENCH_SECS` is the length of each measurement, 5 unless set.

#![allow(clippy::print_stdout, reason = "a measuring program prints its table")]

#[path = "../tests/support/mod.rs"]
mod house;
mod support;

use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use house::daemon::Daemon;
use house::model_server::{Gate, ModelServer, Reply};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::json;
use support::{Connection, drive, get, head, ms, percentile, post, row};
use tokio::runtime::{Builder, Runtime};

fn main() {
    if std::env::args().any(|argument| argument == "--hello") {
        hello();
        return;
    }
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    head("http_load");
    reads(&client);
    creates(&client);
    turns(&client);
    first_tokens(&client);
}

/// How long each measurement takes.
fn time() -> Duration {
    let secs = std::env::var("AGENTSVC_BENCH_SECS").ok().and_then(|secs| secs.parse().ok());
    Duration::from_secs(secs.unwrap_or(5))
}

/// A daemon that limits nobody.
fn daemon(config: &str) -> Daemon {
    Daemon::with(&format!("rate_limit_per_second = 10000000\nlog_level = \"warn\"\n{config}"))
}

/// The bare server: says where it listens and answers every request with `hello`.
fn hello() {
    let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        println!("{}", listener.local_addr().expect("a bound socket has an address"));
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let _ = stream.set_nodelay(true);
            tokio::spawn(async move {
                let service = service_fn(|_: Request<hyper::body::Incoming>| async {
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"hello"))))
                });
                // A client that hangs up is no concern of the measurement.
                let _ =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
}

/// The bare server as a child process, ended with the measurement.
struct Hello(Child, SocketAddr);

impl Hello {
    fn start() -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut child =
            Command::new(program).arg("--hello").stdout(Stdio::piped()).spawn().expect("this program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("the child speaks");
        Self(child, line.trim().parse().expect("an address"))
    }
}

impl Drop for Hello {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reading an agent, as a share of what the bare server does in the same run.
fn reads(client: &Runtime) {
    let (hello, daemon) = (Hello::start(), daemon(""));
    let path = format!("/api/agents/{}", daemon.agent("read"));
    let (mut bare, mut read) = (Vec::new(), Vec::new());
    // In turns, so that a slow moment of the machine meets both.
    for _ in 0..3 {
        let slice = time() / 2;
        bare.push(client.block_on(drive(hello.1, 32, slice, 200, |_, _| get("/"))).rate());
        let path = path.clone();
        read.push(client.block_on(drive(daemon.addr, 32, slice, 200, move |_, _| get(&path))).rate());
    }
    let (bare, read) = (middle(bare), middle(read));
    let share = read / bare * 100.0;
    let result = format!("{read:.0}/s of {bare:.0}/s = {share:.0} %");
    row("GET /api/agents/{id}, 32 connections, share of bare hyper", &result, ">= 35 %", share >= 35.0);
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Durable creation.
fn creates(client: &Runtime) {
    let daemon = daemon("");
    let run = client.block_on(drive(daemon.addr, 64, time(), 201, |connection, n| {
        let manifest = format!("name = \"a-{connection}-{n}\"\ndescription = \"One of many\"\n");
        post("/api/agents", &json!({ "manifest_toml": manifest }).to_string())
    }));
    let result = format!("{:.0}/s, p99 {}", run.rate(), ms(percentile(&run.latencies, 0.99)));
    row("POST /api/agents, durable, 64 connections", &result, ">= 15,000/s", run.rate() >= 15_000.0);
}

/// Whole turns against a model that answers at once.
fn turns(client: &Runtime) {
    let model = ModelServer::fixed("A short answer of a few words.");
    let daemon = daemon(&default_model(&model));
    let agents = many_agents(&daemon, 1_000);
    let run = client.block_on(drive(daemon.addr, 64, time() * 2, 200, move |connection, n| {
        let agent = &agents[(n * 64 + connection) % agents.len()];
        post(&format!("/api/agents/{agent}/message"), r#"{"message":"What is the answer?"}"#)
    }));
    let (p50, p99) = (percentile(&run.latencies, 0.5), percentile(&run.latencies, 0.99));
    let result = format!("{:.0}/s, p50 {}, p99 {}", run.rate(), ms(p50), ms(p99));
    let met = run.rate() >= 4_000.0 && p99 <= Duration::from_millis(50);
    row("POST message, whole durable turn, 64 connections, 1,000 agents", &result, ">= 4,000/s, p99 <= 50 ms", met);
}

/// What the daemon adds between the model's first token and the client.
fn first_tokens(client: &Runtime) {
    let model = ModelServer::start();
    let daemon = daemon(&default_model(&model));
    let agent = many_agents(&daemon, 1).remove(0);
    let request = post(&format!("/api/agents/{agent}/message/stream"), r#"{"message":"hello"}"#);
    let mut added: Vec<Duration> = (0..500)
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
    let result = format!("p50 {}, p99 {}", ms(percentile(&added, 0.5)), ms(p99));
    row("first streamed token after the model's, both hops", &result, "<= 1 ms, p99", p99 <= Duration::from_millis(1));
}

fn default_model(model: &ModelServer) -> String {
    let base_url = model.base_url();
    format!(
        "[default_model]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{base_url}\"\napi_key_env = \"TEST_MODEL_KEY\"\n"
    )
}

/// The ids of new agents.
fn many_agents(daemon: &Daemon, count: usize) -> Vec<String> {
    let items: Vec<_> = (0..count).map(|n| json!({ "manifest_toml": format!("name = \"n-{n}\"") })).collect();
    let reply = daemon.post("/api/agents/bulk", &json!({ "agents": items }));
    let body = reply.expect(reply.status);
    let rows = body["results"].as_array().expect("one result per agent");
    rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
}
