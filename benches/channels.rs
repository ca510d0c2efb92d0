//! Adapters of channels: `cargo bench --bench all -- channels`, or some of its parts: `inbound`, `idle`, `stuck`.
//!
//! The adapters are processes of this program, started by the daemon with `--adapter` and a port, at which they get their orders.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::measure::process::{anonymous_bytes, threads};
use crate::measure::{Row, UNLIMITED, cpu_seconds, default_model, goals, head, is_wanted, ms, percentile, size};
use crate::support::daemon::Daemon;
use crate::support::model_server::{ModelServer, Reply};
use crate::support::until;
use serde_json::{Value, json};

/// The word that makes this program an adapter.
const ADAPTER: &str = "--adapter";
/// Messages of one person that are answered together.
const JOINED: usize = 20;
/// Chats of the adapter that brings many messages.
const CHATS: usize = 900;
/// Messages a second of the goal.
const RATE: usize = 5_000;
/// Adapters of the goal.
const ADAPTERS: usize = 200;
/// Chats whose answers a stuck adapter does not take.
const STUCK_CHATS: usize = 60;
/// What a message begins with whose answer is longer than a pipe holds, so that its write is stuck, too.
const LONG: &str = "at length, ";
/// Bytes of such an answer.
const LONG_BYTES: usize = 100_000;

pub(crate) fn main() {
    head("channels");
    if is_wanted("inbound") {
        inbound();
    }
    if is_wanted("idle") {
        idle();
    }
    if is_wanted("stuck") {
        stuck();
    }
}

/// An order to an adapter: how many messages it brings, how many a second (0: as many as go), in how many chats, how many of a
/// chat one after the other; whether it takes no commands from then on.
struct Order {
    messages: usize,
    rate: usize,
    chats: usize,
    together: usize,
    is_stuck: bool,
}

impl Order {
    fn line(&self) -> String {
        format!("{} {} {} {} {}\n", self.messages, self.rate, self.chats, self.together, u8::from(self.is_stuck))
    }

    fn parse(line: &str) -> Self {
        let words: Vec<usize> = line.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        let [messages, rate, chats, together, stuck] = words[..] else { panic!("an order has five numbers: {line}") };
        Self { messages, rate, chats, together, is_stuck: stuck == 1 }
    }
}

/// Is this process an adapter?
pub(crate) fn is_adapter() -> bool {
    std::env::args().any(|argument| argument == ADAPTER)
}

/// An adapter: says that it is ready, brings messages when it is told to, and answers what is no command as the SDK does.
pub(crate) fn adapt() {
    let port = std::env::args().skip_while(|argument| argument != ADAPTER).nth(1);
    let port: u16 = port.and_then(|port| port.parse().ok()).expect("a port");
    if std::env::args().any(|argument| argument == "--describe") {
        return println!("{}", json!({ "name": "bench", "display_name": "Bench", "description": "", "fields": [] }));
    }
    let emit = |lines: &str| {
        let mut output = std::io::stdout().lock();
        // The daemon may be gone.
        let _ = output.write_all(lines.as_bytes()).and_then(|()| output.flush());
    };
    emit("{\"method\":\"ready\",\"params\":{\"capabilities\":[]}}\n");
    let orders = TcpStream::connect(("127.0.0.1", port)).expect("the program that measures listens");
    let is_stuck = Arc::new(AtomicBool::new(false));
    let of = Arc::clone(&is_stuck);
    thread::spawn(move || {
        for line in BufReader::new(orders).lines().map_while(Result::ok) {
            let order = Order::parse(&line);
            of.store(order.is_stuck, Ordering::Relaxed);
            bring(&order, emit);
        }
    });
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        while is_stuck.load(Ordering::Relaxed) {
            thread::park();
        }
        if line == "?" {
            emit("{\"method\":\"error\",\"params\":{\"message\":\"invalid JSON: line 1 column 1\"}}\n");
        }
    }
}

/// Brings messages, each with the time at which it is written.
fn bring(order: &Order, emit: impl Fn(&str)) {
    let begun = Instant::now();
    let id = now();
    for number in 0..order.messages {
        if let Some(due) = (number * 1_000_000).checked_div(order.rate) {
            thread::sleep((begun + Duration::from_micros(due as u64)).saturating_duration_since(Instant::now()));
        }
        let chat = number / order.together % order.chats;
        let long = if order.is_stuck { LONG } else { "" };
        let params = json!({ "user_id": format!("chat-{chat}"), "user_name": "Ann", "message_id": format!("{id}-{number}"),
            "text": format!("{long}written at {}", now()) });
        emit(&format!("{}\n", json!({ "method": "message", "params": params })));
    }
}

/// Nanoseconds of the clock that all processes share.
fn now() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    u64::try_from(time.as_nanos()).expect("it is before 2554")
}

/// Where adapters get their orders.
struct Orders(TcpListener);

impl Orders {
    fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").expect("loopback has a free port"))
    }

    /// The entry of a channel whose adapter comes here.
    fn entry(&self, name: &str) -> String {
        let program = std::env::current_exe().expect("this program has a path");
        let folder = program.parent().expect("a program lies in a folder");
        let port = self.0.local_addr().expect("a bound socket has an address").port();
        format!(
            "[[sidecar_channels]]\nname = {name:?}\ncommand = {program:?}\nargs = [{ADAPTER:?}, \"{port}\"]\nagent = {name:?}\n\
             dm_policy = \"respond\"\nreadable_paths = [{folder:?}]\n"
        )
    }

    fn next(&self) -> TcpStream {
        self.0.accept().expect("an adapter comes").0
    }
}

/// A model that answers at once, and notes how long the newest message that it is asked about was on its way.
fn model() -> (ModelServer, Arc<Mutex<Vec<Duration>>>) {
    let (server, ways) = (ModelServer::forgetful(), Arc::<Mutex<Vec<Duration>>>::default());
    let noted = Arc::clone(&ways);
    server.respond(move |request| {
        let written = request.last_user().rsplit("written at ").next().and_then(|time| time.trim().parse().ok());
        if let Some(written) = written {
            noted.lock().expect("the list is whole").push(Duration::from_nanos(now().saturating_sub(written)));
        }
        let is_long = request.last_user().starts_with(LONG);
        Reply::text(if is_long { "x".repeat(LONG_BYTES) } else { "ok".to_owned() })
    });
    (server, ways)
}

/// Has an adapter bring messages; the ways of those that began `turns` turns, sorted, and how long all of it took.
fn measured(
    adapter: &mut TcpStream,
    ways: &Mutex<Vec<Duration>>,
    order: &Order,
    turns: usize,
) -> (Vec<Duration>, Duration) {
    ways.lock().expect("the list is whole").clear();
    let begun = Instant::now();
    adapter.write_all(order.line().as_bytes()).expect("the adapter listens");
    until("all turns have begun", || (ways.lock().expect("the list is whole").len() >= turns).then_some(()));
    let took = begun.elapsed();
    let mut found = std::mem::take(&mut *ways.lock().expect("the list is whole"));
    found.sort_unstable();
    (found, took)
}

/// Many messages of one adapter. Those of a person are answered together as soon as there are [`JOINED`], so that each is
/// stored and few are turns: as many of them would be another measurement.
fn inbound() {
    let ((model, ways), orders) = (model(), Orders::new());
    let daemon = Daemon::with(&format!("{UNLIMITED}{}{}", default_model(&model.base_url()), orders.entry("many")));
    daemon.agent_with(
        "many",
        &format!("[channel_overrides]\nmessage_debounce_ms = 60000\nmessage_debounce_max_buffer = {JOINED}\n"),
    );
    let mut adapter = orders.next();
    let secs = size("AGENTSVC_BENCH_SECS", 10, 2);
    let order = |rate, messages| Order { messages, rate, chats: CHATS, together: JOINED, is_stuck: false };
    // Every chat and its session are there then.
    let first = CHATS * JOINED;
    measured(&mut adapter, &ways, &order(0, first), CHATS);

    let messages = RATE * secs;
    let (_, took) = measured(&mut adapter, &ways, &order(0, messages), messages / JOINED);
    let rate = messages as f64 / took.as_secs_f64();
    Row::new(
        format!("{messages} messages of one adapter, {JOINED} for each turn, as many as go"),
        format!("{rate:.0}/s"),
    )
    .goal(&goals::CHANNEL_MESSAGES, rate >= RATE as f64)
    .print();

    let (ways, took) = measured(&mut adapter, &ways, &order(RATE, messages), messages / JOINED);
    let p99 = percentile(&ways, 0.99);
    Row::new(
        format!("{RATE} messages a second of one adapter: from the last message of a turn to its model call"),
        format!("median {}, p99 {}", ms(percentile(&ways, 0.5)), ms(p99)),
    )
    .beside(format!("{:.0}/s came in", messages as f64 / took.as_secs_f64()))
    .goal(&goals::CHANNEL_TURN, p99 <= Duration::from_millis(50))
    .print();
}

/// Many adapters that say nothing.
fn idle() {
    let (adapters, secs) = (size("AGENTSVC_BENCH_ADAPTERS", ADAPTERS, 20), size("AGENTSVC_BENCH_SECS", 30, 5) as u64);
    let used = |channels: usize| {
        let orders = Orders::new();
        let mut config = String::from(UNLIMITED);
        for number in 0..channels {
            write!(config, "{}", orders.entry(&format!("idle-{number}"))).expect("a string takes text");
        }
        let daemon = Daemon::with(&config);
        let _adapters: Vec<_> = (0..channels).map(|_| orders.next()).collect();
        until("all are ready", || {
            let list = daemon.get("/api/channels").expect(200);
            let rows = list["channels"].as_array()?;
            let is_ready = |row: &&Value| row["state"] == "started";
            (rows.iter().filter(is_ready).count() == channels).then_some(())
        });
        thread::sleep(Duration::from_secs(5));
        let (before, begun) = (cpu_seconds(daemon.pid()), Instant::now());
        thread::sleep(Duration::from_secs(secs));
        let share = (cpu_seconds(daemon.pid()) - before) / begun.elapsed().as_secs_f64() * 100.0;
        (share, anonymous_bytes(daemon.pid()) as f64 / f64::from(1 << 20), threads(daemon.pid()))
    };
    let ((no_share, none, no_threads), (share, all, all_threads)) = (used(0), used(adapters));
    let added = all - none;
    Row::new(format!("{adapters} idle adapters, over {secs} s"), format!("{share:.2} % of a core"))
        .beside(format!("{no_share:.2} % without adapters"))
        .goal(&goals::CHANNEL_IDLE_CPU, share <= 1.0)
        .print();
    Row::new(format!("memory of the daemon with {adapters} idle adapters"), format!("{added:.1} MiB more"))
        .beside(format!(
            "{none:.1} MiB without adapters; both without a file behind it; {all_threads} threads, {no_threads} without"
        ))
        .goal(&goals::CHANNEL_IDLE_MEMORY, added <= 3.0)
        .print();
}

/// What an adapter that takes no answers does to another.
fn stuck() {
    let ((model, ways), orders) = (model(), Orders::new());
    let others = Orders::new();
    let channels = orders.entry("quick") + &others.entry("stuck");
    let config = format!("{UNLIMITED}{}{channels}", default_model(&model.base_url()));
    let daemon = Daemon::with(&config);
    daemon.agent_with("quick", "");
    daemon.agent_with("stuck", "");
    let (mut quick, mut stuck) = (orders.next(), others.next());
    let messages = size("AGENTSVC_BENCH_MESSAGES", 2_000, 200);
    let order = Order { messages, rate: 100, chats: CHATS, together: 1, is_stuck: false };
    let (without, _) = measured(&mut quick, &ways, &order, messages);
    let blocking = Order { messages: STUCK_CHATS, rate: 0, chats: STUCK_CHATS, together: 1, is_stuck: true };
    measured(&mut stuck, &ways, &blocking, STUCK_CHATS);
    let (with, _) = measured(&mut quick, &ways, &order, messages);
    let open = daemon.get("/api/channels/stuck/sends").expect(200);
    let queued = |send: &&Value| send["status"] == "queued";
    let waiting = open["sends"].as_array().map_or(0, |sends| sends.iter().filter(queued).count());
    assert!(waiting > 0, "the adapter is not stuck: {open}");
    let more = percentile(&with, 0.99).saturating_sub(percentile(&without, 0.99));
    let of = |times: &[Duration]| format!("{} / {}", ms(percentile(times, 0.5)), ms(percentile(times, 0.99)));
    Row::new(
        "messages of an adapter beside one that takes no answers: p99 of the way to the model call",
        format!("{} more", ms(more)),
    )
    .beside(format!("median / p99: {} alone, {} beside it", of(&without), of(&with)))
    .goal(&goals::CHANNEL_STUCK, more <= Duration::from_millis(1))
    .print();
}
