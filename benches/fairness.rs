//! What one agent with ten thousand queued messages does to the others: `cargo bench --bench all -- fairness`.
//!
//! The model answers each call after [`MODEL_MS`], and [`CALLS`] may be out at once, so that there is a queue to be
//! unfair in: 999 agents get one message each in the same moment, and the last answer comes after about 999 / [`CALLS`]
//! times that. A wait is the time from a message's being sent to its answer, without what the model itself took. The
//! same 999 do so in turns, on the same daemon: alone; beside a hog whose messages are all in one session; beside one
//! with a hundred sessions, of which each could be answered at once. The hog's messages are durable and in line before
//! the others come, none of them answered: the model holds its answers back until then. Each round does all three; a
//! round's ratio is that of its 99th percentiles, and what counts is the median of the rounds' ratios, of the worse hog:
//! a disk that stalls once moves one of them. The row tells the others, too.
//!
//! Recorded beside it: the same where the others do not come at once but one after the other, at half of what the
//! slots carry, so that alone they hardly ever wait. Then the hog takes every slot that is free, and a newcomer waits
//! for the next one; its time is told with the model's.
//!
//! `AGENTSVC_BENCH_QUEUED` (10,000) and `AGENTSVC_BENCH_OTHERS` (999) are the sizes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::measure::{Connection, Row, UNLIMITED, default_model, goals, head, metric, ms, percentile, post, size};
use crate::support::daemon::Daemon;
use crate::support::model_server::{Gate, ModelServer, Reply};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::RwLock;
use tokio::task::LocalSet;
use uuid::Uuid;

/// What the model takes for each call.
const MODEL_MS: u64 = 20;
/// Limit of concurrent model calls.
const CALLS: u32 = 16;
/// Rounds of each figure, an odd number.
const ROUNDS: usize = 5;
/// Sessions of a hog that has many.
const SESSIONS: usize = 100;
/// How long the hog's messages may take to be in line.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn main() {
    let queued = size("AGENTSVC_BENCH_QUEUED", 10_000, 2_000);
    let others = size("AGENTSVC_BENCH_OTHERS", 999, 199);
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    head("fairness");
    let stage = Stage::new(&client, others);
    for arrival in [Arrival::AtOnce, Arrival::OneByOne] {
        let mut rounds = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let alone = P99::of(stage.others(arrival), arrival);
            let beside = [1, SESSIONS].map(|sessions| P99::of(stage.beside_a_hog(queued, sessions, arrival), arrival));
            rounds.push(Round { alone, beside });
        }
        report(arrival, others, queued, &rounds);
    }
}

/// What one round measured: the others alone, and beside a hog of one session and one of many.
struct Round {
    alone: P99,
    beside: [P99; 2],
}

/// How the others' messages come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrival {
    AtOnce,
    OneByOne,
}

/// Of the waits of one kind in one round.
#[derive(Clone, Copy)]
struct P99(Duration);

impl P99 {
    fn of(mut times: Vec<Duration>, arrival: Arrival) -> Self {
        times.sort_unstable();
        let p99 = percentile(&times, 0.99);
        match arrival {
            Arrival::AtOnce => Self(p99.saturating_sub(Duration::from_millis(MODEL_MS))),
            Arrival::OneByOne => Self(p99),
        }
    }
}

/// The median ratio of one kind of hog, and a text with it and all of them.
fn judge(rounds: &[Round], hog: usize) -> (f64, String) {
    let ratio = |round: &Round| round.beside[hog].0.as_secs_f64() / round.alone.0.as_secs_f64();
    let mut ratios: Vec<f64> = rounds.iter().map(ratio).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let all: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
    let median = ratios[ratios.len() / 2];
    (median, format!("{median:.2}x ({})", all.join(", ")))
}

fn report(arrival: Arrival, others: usize, queued: usize, rounds: &[Round]) {
    let ((one, one_says), (many, many_says)) = (judge(rounds, 0), judge(rounds, 1));
    let result = format!("one session {one_says}, {SESSIONS} sessions {many_says}");
    let alone: Vec<String> = rounds.iter().map(|round| ms(round.alone.0)).collect();
    let alone = format!("alone {}", alone.join(", "));
    let calls = format!("{CALLS} calls at once of {MODEL_MS} ms");
    match arrival {
        Arrival::AtOnce => {
            let what =
                format!("p99 wait of {others} agents with 1 message each beside one with {queued} queued, {calls}");
            Row::new(what, result).beside(alone).goal(&goals::FAIRNESS, one.max(many) <= 1.2).print();
        }
        Arrival::OneByOne => {
            let what = "the same, coming one by one at half of what the slots carry; p99 with the model's time";
            Row::new(what, result).beside(alone).print();
        }
    }
}

/// A daemon, a slow model and the agents that are measured.
struct Stage<'a> {
    client: &'a Runtime,
    daemon: Daemon,
    /// While somebody writes, the model does not answer.
    hold: Arc<RwLock<()>>,
    others: Vec<String>,
    _model: ModelServer,
}

impl<'a> Stage<'a> {
    fn new(client: &'a Runtime, others: usize) -> Self {
        let (model, hold) = (ModelServer::forgetful(), Arc::new(RwLock::new(())));
        let held = Arc::clone(&hold);
        model.respond(move |_| {
            let (gate, held) = (Gate::default(), Arc::clone(&held));
            let passes = gate.clone();
            tokio::spawn(async move {
                drop(held.read().await);
                tokio::time::sleep(Duration::from_millis(MODEL_MS)).await;
                passes.open();
            });
            Reply::text("A short answer of a few words.").gated(&gate)
        });
        let config =
            format!("{UNLIMITED}{}[queue.concurrency]\nprovider_calls = {CALLS}\n", default_model(&model.base_url()));
        let daemon = Daemon::with(&config);
        let items: Vec<_> = (0..others).map(|n| json!({ "manifest_toml": format!("name = \"other-{n}\"") })).collect();
        let made = daemon.post("/api/agents/bulk", &json!({ "agents": items })).expect(200);
        let rows = made["results"].as_array().expect("one result per agent");
        let others = rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect();
        Self { client, daemon, hold, others, _model: model }
    }

    /// Each of the others is told one message; from each message to its answer.
    fn others(&self, arrival: Arrival) -> Vec<Duration> {
        let addr = self.daemon.addr;
        let pace = Duration::from_millis(MODEL_MS) * 2 / CALLS;
        let local = LocalSet::new();
        self.client.block_on(local.run_until(async {
            let mut wires = Vec::with_capacity(self.others.len());
            for _ in &self.others {
                wires.push(Connection::open(addr).await.expect("the daemon takes connections"));
            }
            let begun = Instant::now();
            let mut tasks = Vec::with_capacity(wires.len());
            for (n, (mut wire, agent)) in wires.into_iter().zip(&self.others).enumerate() {
                let request = post(&format!("/api/agents/{agent}/message"), r#"{"message":"What is the answer?"}"#);
                let due = match arrival {
                    Arrival::AtOnce => begun,
                    Arrival::OneByOne => begun + pace * n as u32,
                };
                tasks.push(tokio::task::spawn_local(async move {
                    tokio::time::sleep_until(due.into()).await;
                    let sent = Instant::now();
                    let (status, body) = wire.call(&request).await.expect("the daemon answers");
                    assert_eq!(status, 200, "{}", String::from_utf8_lossy(body));
                    sent.elapsed()
                }));
            }
            let mut times = Vec::with_capacity(tasks.len());
            for task in tasks {
                times.push(task.await.expect("no client panics"));
            }
            times
        }))
    }

    /// The same beside an agent whose messages are all in line already.
    fn beside_a_hog(&self, queued: usize, sessions: usize, arrival: Arrival) -> Vec<Duration> {
        let hog = self.daemon.agent_with("hog", "");
        let held = self.client.block_on(Arc::clone(&self.hold).write_owned());
        self.client.block_on(self.fill(&hog, queued, sessions));
        self.wait("the hog's messages are in line", |open| open == queued);
        drop(held);
        let times = self.others(arrival);
        assert!(self.open() > 0, "the hog is done before the others: queue more");
        assert_eq!(self.daemon.delete(&format!("/api/agents/{hog}")).status, 200);
        self.wait("the hog is gone", |open| open == 0);
        times
    }

    /// Says so many messages to an agent, in so many sessions in turn; nobody waits for their answers.
    async fn fill(&self, hog: &str, queued: usize, sessions: usize) {
        let sessions: Vec<Uuid> =
            (0..sessions).map(|n| Uuid::from_u64_pair(0x0190_0000_0000_7000, 1 << 63 | n as u64)).collect();
        for n in 0..queued {
            let session = sessions[n % sessions.len()];
            let body = json!({ "message": "Work, and then more work.", "session_id": session }).to_string();
            let mut wire = Connection::open(self.daemon.addr).await.expect("the daemon takes connections");
            wire.send(&post(&format!("/api/agents/{hog}/message/stream"), &body)).await.expect("the daemon reads");
            // The answer's head comes when the message is safe.
            wire.read_to(b"\r\n\r\n").await.expect("the message is taken");
        }
    }

    /// Turns that have not ended, as of the last beat.
    fn open(&self) -> usize {
        metric(&self.daemon.get("/api/metrics").text(), "agentsvc_turns_open") as usize
    }

    fn wait(&self, what: &str, is_reached: impl Fn(usize) -> bool) {
        let begun = Instant::now();
        while !is_reached(self.open()) {
            assert!(begun.elapsed() < PATIENCE, "gave up waiting: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
