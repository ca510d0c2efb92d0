//! All nodes are replaced, one after the other, as the guide says, while clients go on.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::sleep;

use super::Stage;
use crate::measure::{Connection, Row, get, goals, ms, percentile, post, size};
use crate::nodes::{self, NODES};
use crate::support::until;

/// Clients at once; every second one sends messages, the others read.
const CLIENTS: usize = 16;
/// From the answer of one request of a client to the next one.
const PERIOD: Duration = Duration::from_millis(20);
/// The pause before a request that was not carried out is repeated.
const PAUSE: Duration = Duration::from_millis(10);
/// Agents that get messages.
const AGENTS: usize = 1_000;
/// How long the load goes on before and behind the upgrades.
const AROUND: Duration = Duration::from_secs(2);

/// What clients saw.
#[derive(Default)]
struct Seen {
    /// From the first try of each request to its answer.
    waits: Vec<Duration>,
    /// Answers with `moving`, after each of which the request was repeated.
    moving: usize,
    /// The node took no connection: another one was asked.
    refused: usize,
    /// The connection broke off behind the request.
    broken: usize,
    /// Every other answer but a 2xx.
    odd: BTreeMap<String, usize>,
}

/// The load.
struct Load {
    nodes: Vec<SocketAddr>,
    agents: Vec<String>,
    next: AtomicUsize,
    is_over: AtomicBool,
    seen: Mutex<Seen>,
}

/// Ends the load when it is dropped: also where what goes on beside it panics.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What became of a request.
enum Answer {
    Done,
    Moving,
    Refused,
    Broken,
    Odd(String),
}

pub(crate) fn measure(stage: &mut Stage) {
    stage.wait_level();
    let load = Load {
        nodes: stage.cluster.nodes.iter().map(|node| node.api).collect(),
        agents: stage.agents.iter().take(AGENTS).cloned().collect(),
        next: AtomicUsize::default(),
        is_over: AtomicBool::default(),
        seen: Mutex::default(),
    };
    let upgrades = size("AGENTSVC_BENCH_UPGRADES", 3, 1);
    thread::scope(|scope| {
        scope.spawn(|| load.run());
        let _ended = Ending(&load.is_over);
        thread::sleep(AROUND);
        (0..upgrades).for_each(|_| upgrade(stage));
        thread::sleep(AROUND);
    });
    let mut seen = std::mem::take(&mut *load.seen());
    seen.waits.sort_unstable();
    let longest = seen.waits.last().copied().unwrap_or_default();
    let errors: usize = seen.odd.iter().filter(|(code, _)| code.starts_with('5')).map(|(_, count)| count).sum();
    let what = format!("{NODES} nodes replaced {upgrades} times under load, {} agents", stage.agents.len());
    let odd: Vec<String> = seen.odd.iter().map(|(code, count)| format!("{count} x {code}")).collect();
    let odd = if odd.is_empty() { "no other".to_owned() } else { odd.join(", ") };
    Row::new(format!("{what}: 5xx but `moving`"), format!("{errors} of {} requests", seen.waits.len()))
        .beside(format!(
            "{} x moving, {odd}; {} connections refused, {} broken off",
            seen.moving, seen.refused, seen.broken
        ))
        .goal(&goals::CLUSTER_ANSWERS, errors == 0)
        .print();
    Row::new(format!("{what}: longest wait, repeats included"), ms(longest))
        .beside(format!("p50 {}, p99 {}", ms(percentile(&seen.waits, 0.5)), ms(percentile(&seen.waits, 0.99))))
        .goal(&goals::CLUSTER_WAIT, longest <= Duration::from_secs(1))
        .print();
}

/// Replaces all nodes, the standbys first.
fn upgrade(stage: &mut Stage) {
    let owner = until("a node owns the world", || nodes::owner(&stage.cluster.nodes));
    for at in (1..=NODES).map(|behind| (owner + behind) % NODES) {
        let node = &mut stage.cluster.nodes[at];
        let (client, path) = (node.client(), format!("/api/cluster/nodes/{}/drain", node.name));
        until("the node is drained", || client.try_send("POST", &path, &[], None).ok().filter(|it| it.status == 200));
        node.stop();
        node.start();
        stage.wait_level();
    }
}

impl Load {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an answer to a request that was first sent when it `began`; false when it is to be repeated.
    fn note(&self, answer: Answer, began: Instant) -> bool {
        let mut seen = self.seen();
        match answer {
            Answer::Done => seen.waits.push(began.elapsed()),
            Answer::Broken => seen.broken += 1,
            Answer::Odd(ref code) => *seen.odd.entry(code.clone()).or_default() += 1,
            Answer::Moving => seen.moving += 1,
            Answer::Refused => seen.refused += 1,
        }
        !matches!(answer, Answer::Moving | Answer::Refused)
    }

    /// Runs until it is over.
    fn run(&self) {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let clients = (0..CLIENTS).map(|client| self.client(client));
        LocalSet::new().block_on(&runtime, futures_util::future::join_all(clients));
    }

    /// One client, which stays with a node as long as it answers.
    async fn client(&self, client: usize) {
        let mut node = client % self.nodes.len();
        while !self.is_over.load(Ordering::Relaxed) {
            let agent = &self.agents[self.next.fetch_add(1, Ordering::Relaxed) % self.agents.len()];
            let request = if client.is_multiple_of(2) {
                post(&format!("/api/agents/{agent}/message"), r#"{"message":"What is the answer?"}"#)
            } else {
                get(&format!("/api/agents/{agent}"))
            };
            let began = Instant::now();
            while !self.note(ask(self.nodes[node], &request).await, began) {
                node = (node + 1) % self.nodes.len();
                sleep(PAUSE).await;
            }
            sleep(PERIOD).await;
        }
    }
}

async fn ask(node: SocketAddr, request: &[u8]) -> Answer {
    let Ok(mut connection) = Connection::open(node).await else { return Answer::Refused };
    let (status, body) = match connection.call(request).await {
        Ok((200, _)) => return Answer::Done,
        Ok(answer) => answer,
        Err(_) => return Answer::Broken,
    };
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    match body["code"].as_str() {
        Some("moving") if status == 503 => Answer::Moving,
        code => Answer::Odd(format!("{status} {}", code.unwrap_or_default())),
    }
}

/// The milliseconds that a line of a log says for `name`.
pub(crate) fn field(line: &str, name: &str) -> Option<Duration> {
    let words = line.split(|end: char| end.is_whitespace() || end == ',');
    let value = words.filter_map(|word| word.split_once('=')).find(|(key, _)| *key == name)?.1;
    value.parse().ok().map(Duration::from_millis)
}
