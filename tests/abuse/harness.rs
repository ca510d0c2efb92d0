//! What all of these tests stand on: a daemon without a rate limit, its vital signs, and patience.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::daemon::Daemon;
use crate::support::http::Client;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// Bytes that a flood may leave behind at most: far above what any takes, far below what it sends.
pub(crate) const GROWTH_MAX: u64 = 256 << 20;

/// A daemon that lets everybody ask as often as they like.
#[track_caller]
pub(crate) fn harness(config: &str) -> Daemon {
    Daemon::with(&format!("rate_limit_per_second = 10000000\n{config}"))
}

/// Polls until there is a value.
#[track_caller]
pub(crate) fn wait<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(Instant::now() < deadline, "gave up waiting: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Bytes of the process that are in memory.
#[track_caller]
pub(crate) fn resident(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("the daemon runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells it");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("a number") << 10
}

/// What a test begins with, to be compared with at its end.
pub(crate) struct Memory(u64);

impl Memory {
    pub(crate) fn of(daemon: &Daemon) -> Self {
        Self(resident(daemon))
    }

    /// Bytes that came on top since then; 0 where it is less.
    pub(crate) fn growth(&self, daemon: &Daemon) -> u64 {
        resident(daemon).saturating_sub(self.0)
    }

    /// Panics where it is more than [`GROWTH_MAX`].
    #[track_caller]
    pub(crate) fn is_flat(&self, daemon: &Daemon, what: &str) {
        let growth = self.growth(daemon);
        eprintln!("{what}: {:.1} MiB more in memory", growth as f64 / f64::from(1 << 20));
        assert!(growth < GROWTH_MAX, "{what}: {growth} bytes more in memory");
    }
}

/// The value of a metric without labels.
pub(crate) fn metric(client: &Client, name: &str) -> Option<f64> {
    let text = client.try_send("GET", "/api/metrics", &[], None).ok()?.text();
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// Connections beside the one that asks.
pub(crate) fn connections(client: &Client) -> Option<usize> {
    metric(client, "agentsvc_http_connections").map(|open| open as usize - 1)
}

/// A client as it should be, all the while: it reads and it talks, and has its answers.
pub(crate) struct Neighbour {
    stop: Arc<AtomicBool>,
    answers: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl Neighbour {
    /// One that talks to an agent of its own.
    #[track_caller]
    pub(crate) fn of(daemon: &Daemon) -> Self {
        Self::with(daemon, daemon.agent("neighbour"))
    }

    /// One that talks to this agent.
    #[track_caller]
    pub(crate) fn with(daemon: &Daemon, agent: String) -> Self {
        let (stop, answers) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let client = daemon.client();
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&answers));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                client.get("/api/health").expect(200);
                let said = client.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "hello" }));
                said.expect(200);
                counted.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        Self { stop, answers, thread }
    }

    /// Waits until it had another answer.
    #[track_caller]
    pub(crate) fn is_served(&self) {
        let before = self.answers.load(Ordering::Relaxed);
        wait("another client is served", || {
            assert!(!self.thread.is_finished(), "another client was not served");
            (self.answers.load(Ordering::Relaxed) > before).then_some(())
        });
    }

    /// It goes; panics when it was not served at any time.
    #[track_caller]
    pub(crate) fn leave(self) {
        self.is_served();
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("another client is served");
    }
}
