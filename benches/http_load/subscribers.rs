//! Many subscribers on one session: how much they slow its producer.
//!
//! The model speaks at a steady pace, [`TOKENS_PER_SEC`], as a fast one does. The producer is the stream of the client
//! that asked, from its message to its end, once alone and once while every subscriber watches the session; one in
//! twenty of these reads nothing at all. Each figure is the median of rounds in turns. What cannot show there, because
//! a paced stream has slack, is recorded beside it: the way of each token from the model to the producer's client, and
//! the same turn from a model that speaks as fast as it is read.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use super::{daemon, many_agents};
use crate::measure::{Connection, Row, cpu_seconds, default_model, get, goals, middle, ms, percentile, post, size};
use crate::support::daemon::Daemon;
use crate::support::model_server::{Gate, ModelServer, Reply};

/// Tokens of a paced answer for each second.
const TOKENS_PER_SEC: u32 = 50;
/// Rounds of each figure.
const ROUNDS: usize = 3;
/// One of so many subscribers reads nothing.
const DEAF_EVERY: usize = 20;

/// One turn as its producer saw it.
struct Turn {
    took: Duration,
    /// From the model to the producer's client, each token.
    tokens: Vec<Duration>,
    /// Of the daemon.
    cpu: f64,
    heard: Heard,
}

/// What the subscribers got.
#[derive(Default)]
struct Heard {
    events: usize,
    /// Events that they were told they missed.
    missed: usize,
}

/// A daemon with one agent and its model.
struct Stage {
    model: ModelServer,
    daemon: Daemon,
    agent: String,
    answers: usize,
}

pub(crate) fn measure(client: &Runtime) {
    let subscribers = size("AGENTSVC_BENCH_SUBSCRIBERS", 1_000, 200);
    let words = size("AGENTSVC_BENCH_SECS", 5, 1) * TOKENS_PER_SEC as usize;
    let model = ModelServer::start();
    let daemon = daemon(&default_model(&model.base_url()));
    let agent = many_agents(&daemon, 1).remove(0);
    let mut stage = Stage { model, daemon, agent, answers: 0 };
    for is_paced in [true, false] {
        let (mut alone, mut watched) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            alone.push(stage.turn(client, words, 0, is_paced));
            watched.push(stage.turn(client, words, subscribers, is_paced));
        }
        let took = |turns: &[Turn]| middle(turns.iter().map(|turn| turn.took.as_secs_f64()).collect());
        let (before, after) = (took(&alone), took(&watched));
        let slower = (after / before - 1.0) * 100.0;
        let result = format!("{:.3} s alone, {:.3} s watched: {slower:+.1} %", before, after);
        let heard = watched.last().map(|turn| &turn.heard).expect("there are rounds");
        let heard = format!("{} events to subscribers, {} told as missed", heard.events, heard.missed);
        let cpu = middle(watched.iter().map(|turn| turn.cpu / turn.took.as_secs_f64() * 100.0).collect());
        if is_paced {
            let what = format!("{subscribers} SSE subscribers on one session, {words} tokens at {TOKENS_PER_SEC}/s");
            let beside = format!("{heard}, {cpu:.0} % of a core");
            Row::new(what, result).beside(beside).goal(&goals::SUBSCRIBERS, slower <= 5.0).print();
            let (before, after) = (p99(&mut alone), p99(&mut watched));
            let result = format!("p99 {}", ms(after));
            Row::new("a token's way to the producer's client meanwhile", result)
                .beside(format!("alone p99 {}", ms(before)))
                .print();
        } else {
            let what = format!("{words} tokens as fast as they are read, {subscribers} subscribers");
            Row::new(what, result).beside(heard).print();
        }
    }
}

fn p99(turns: &mut [Turn]) -> Duration {
    let mut tokens: Vec<Duration> = turns.iter_mut().flat_map(|turn| turn.tokens.drain(..)).collect();
    tokens.sort_unstable();
    percentile(&tokens, 0.99)
}

impl Stage {
    /// One turn of so many words, watched by so many.
    fn turn(&mut self, client: &Runtime, words: usize, subscribers: usize, is_paced: bool) -> Turn {
        let words: Vec<String> = (0..words).map(|n| format!("w{n}x")).collect();
        let gate = Gate::default();
        self.model.push(Reply::text(words.join(" ")).gated(&gate));
        self.answers += 1;
        let audience = Audience::gather(self.daemon.addr, &self.agent, subscribers);
        let cpu = cpu_seconds(self.daemon.pid());
        let request = post(&format!("/api/agents/{}/message/stream", self.agent), r#"{"message":"hello"}"#);
        let answers = self.answers;
        let (took, tokens) = client.block_on(async {
            let mut wire = Connection::open(self.daemon.addr).await.expect("the daemon takes connections");
            let begun = Instant::now();
            wire.send(&request).await.expect("the daemon reads");
            let tokens = if is_paced {
                self.model.received(answers).await;
                paced(&mut wire, &gate, &words).await
            } else {
                Vec::new()
            };
            gate.open();
            wire.read_to(b"event: done").await.expect("the daemon ends the stream");
            (begun.elapsed(), tokens)
        });
        let heard = audience.end();
        Turn { took, tokens, cpu: cpu_seconds(self.daemon.pid()) - cpu, heard }
    }
}

/// Lets the model say a word at each tick of the pace, and waits for it at the producer's client. After one that was
/// late the next ones come sooner, so that the pace is kept over all.
async fn paced(wire: &mut Connection, gate: &Gate, words: &[String]) -> Vec<Duration> {
    let mut pace = tokio::time::interval(Duration::from_secs(1) / TOKENS_PER_SEC);
    // The role first.
    gate.pass(1);
    let mut tokens = Vec::with_capacity(words.len());
    for word in words {
        pace.tick().await;
        let begun = Instant::now();
        gate.pass(1);
        wire.read_to(word.as_bytes()).await.expect("the daemon streams");
        tokens.push(begun.elapsed());
    }
    tokens
}

/// Subscribers on a thread of their own.
struct Audience(Option<thread::JoinHandle<Heard>>);

impl Audience {
    /// Returns when every one of them watches.
    fn gather(addr: SocketAddr, agent: &str, count: usize) -> Self {
        if count == 0 {
            return Self(None);
        }
        let request = get(&format!("/api/agents/{agent}/attach"));
        let (ready, watching) = mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
            runtime.block_on(listen(addr, request, count, ready))
        });
        watching.recv().expect("every subscriber watches");
        Self(Some(thread))
    }

    /// Waits until each has read the end of the turn.
    fn end(self) -> Heard {
        self.0.map(|thread| thread.join().expect("every subscriber hears the end")).unwrap_or_default()
    }
}

async fn listen(addr: SocketAddr, request: Vec<u8>, count: usize, ready: mpsc::Sender<()>) -> Heard {
    let mut streams = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = TcpStream::connect(addr).await.expect("the daemon takes connections");
        stream.write_all(&request).await.expect("the daemon reads");
        let mut bytes = Vec::with_capacity(4 << 10);
        while !contains(&bytes, b": open\n") {
            assert!(stream.read_buf(&mut bytes).await.expect("the stream opens") > 0, "the stream ended");
        }
        bytes.clear();
        streams.push((stream, bytes));
    }
    ready.send(()).expect("the producer waits for it");
    let (mut deaf, mut tasks) = (Vec::new(), Vec::new());
    for (n, (stream, bytes)) in streams.into_iter().enumerate() {
        if n % DEAF_EVERY == DEAF_EVERY - 1 {
            deaf.push(stream);
            continue;
        }
        tasks.push(tokio::spawn(to_the_end(stream, bytes)));
    }
    let mut heard = Heard::default();
    for task in tasks {
        let bytes = task.await.expect("a subscriber hears the end");
        heard.events += count_of(&bytes, b"event: chunk");
        heard.missed += missed(&bytes);
    }
    heard
}

/// Everything up to the end of the turn.
async fn to_the_end(mut stream: TcpStream, mut bytes: Vec<u8>) -> Vec<u8> {
    loop {
        let from = bytes.len().saturating_sub(16);
        assert!(stream.read_buf(&mut bytes).await.expect("the daemon streams") > 0, "the stream ended too early");
        if contains(&bytes[from..], b"event: done") {
            return bytes;
        }
    }
}

fn contains(bytes: &[u8], mark: &[u8]) -> bool {
    bytes.windows(mark.len()).any(|window| window == mark)
}

fn count_of(bytes: &[u8], mark: &[u8]) -> usize {
    bytes.windows(mark.len()).filter(|window| *window == mark).count()
}

/// The sum of what `lagged` events tell.
fn missed(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let told = text.split("\"missed\":").skip(1);
    told.filter_map(|rest| rest.split('}').next()?.parse::<usize>().ok()).sum()
}
