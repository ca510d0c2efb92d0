//! What the daemon looks like from outside, every few seconds.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use super::tally::Tally;
use crate::measure::process::{anonymous_bytes, open_files, threads};
use crate::measure::{bytes_below, cpu_seconds, metric, resident_bytes};
use crate::support::daemon::Daemon;

/// One look.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// Since the begin.
    pub(crate) at: Duration,
    /// Bytes.
    pub(crate) resident: f64,
    /// Bytes without a file behind them.
    pub(crate) anonymous: f64,
    pub(crate) files: f64,
    pub(crate) threads: f64,
    /// Bytes of the home on the disk.
    pub(crate) store: f64,
    /// Seconds of processor time since the daemon's start.
    cpu: f64,
    /// Calls of the clients so far.
    done: f64,
    /// Agents, sessions, triggers, schedules.
    lives: [f64; 4],
    /// Commands at the bridge, open turns, turns in line, matches that wait, bytes not yet durable.
    queues: [f64; 5],
}

/// What [`Sample::lives`] counts.
const LIVES: [&str; 4] = ["agentsvc_agents", "agentsvc_sessions", "agentsvc_triggers", "agentsvc_schedules"];
/// What [`Sample::queues`] counts.
const QUEUES: [&str; 5] = [
    "agentsvc_bridge_waiting",
    "agentsvc_turns_open",
    "agentsvc_turns_waiting",
    "agentsvc_trigger_matches_waiting",
    "agentsvc_store_backlog_bytes",
];

impl Sample {
    /// The names of what [`line`](Self::line) prints.
    pub(crate) const HEAD: &'static str = "minute, calls, cpu s, rss MiB, anon MiB, fds, threads, home MiB, \
        agents, sessions, triggers, schedules, bridge, turns open, turns in line, matches, backlog B";

    /// Looks at the daemon now.
    pub(crate) fn of(daemon: &Daemon, at: Duration, tally: &Tally) -> Self {
        let page = daemon.get("/api/metrics");
        tally.count("metrics", &page, &[200]);
        let page = page.text();
        let pid = daemon.pid();
        Self {
            at,
            resident: resident_bytes(pid) as f64,
            anonymous: anonymous_bytes(pid) as f64,
            files: open_files(pid) as f64,
            threads: threads(pid) as f64,
            store: bytes_below(daemon.home()) as f64,
            cpu: cpu_seconds(pid),
            done: tally.done() as f64,
            lives: LIVES.map(|name| metric(&page, name)),
            queues: QUEUES.map(|name| metric(&page, name)),
        }
    }

    /// The look in one line.
    pub(crate) fn line(&self) -> String {
        let mib = |bytes: f64| format!("{:.1}", bytes / f64::from(1 << 20));
        let minute = format!("{:.1}", self.at.as_secs_f64() / 60.0);
        let mut words = vec![minute, self.done.to_string(), format!("{:.1}", self.cpu)];
        words.extend([mib(self.resident), mib(self.anonymous), self.files.to_string(), self.threads.to_string()]);
        words.push(mib(self.store));
        words.extend(self.lives.iter().chain(&self.queues).map(f64::to_string));
        words.join(", ")
    }
}

/// All of them, in the order of time; each is also written to the file of `AGENTSVC_SOAK_SAMPLES`.
pub(crate) struct Samples {
    samples: Vec<Sample>,
    file: Option<File>,
}

impl Samples {
    pub(crate) fn new() -> Self {
        let path = std::env::var_os("AGENTSVC_SOAK_SAMPLES");
        let mut file = path.map(|path| File::create(path).expect("the file of samples can be made"));
        if let Some(file) = &mut file {
            writeln!(file, "{}", Sample::HEAD).expect("the file of samples can be written");
        }
        Self { samples: Vec::new(), file }
    }

    pub(crate) fn add(&mut self, sample: Sample) {
        self.samples.push(sample);
        if let Some(file) = &mut self.file {
            writeln!(file, "{}", sample.line()).expect("the file of samples can be written");
        }
    }

    /// Those from a moment on.
    pub(crate) fn since(&self, from: Duration) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| sample.at >= from)
    }

    /// What lived at a moment, and at the end.
    pub(crate) fn lives(&self, from: Duration) -> String {
        let told = |sample: Option<&Sample>| {
            let [agents, sessions, triggers, schedules] = sample.map(|sample| sample.lives).unwrap_or_default();
            format!("{agents} agents, {sessions} sessions, {triggers} triggers, {schedules} schedules")
        };
        format!("{}; {}", told(self.since(from).next()), told(self.samples.last()))
    }
}
