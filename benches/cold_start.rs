//! How fast the daemon starts and how little it uses when nothing happens: `cargo bench --bench all -- cold_start`.

use std::thread;
use std::time::{Duration, Instant};

use crate::measure::process::anonymous_bytes;
use crate::measure::start::start;
use crate::measure::{Row, UNLIMITED, cpu_seconds, goals, head, ms, resident_bytes, size};
use crate::support::daemon::Daemon;
use serde_json::json;

/// Agents of one request.
const BULK: usize = 10_000;

pub(crate) fn main() {
    head("cold_start");
    let mut times: Vec<Duration> = (0..size("AGENTSVC_BENCH_STARTS", 20, 5)).map(|_| start("")).collect();
    times.sort_unstable();
    let median = times[times.len() / 2];
    let result = format!("{} (from {} to {})", ms(median), ms(times[0]), ms(times[times.len() - 1]));
    let what = format!("empty home: exec to first 200, median of {}", times.len());
    Row::new(what, result).goal(&goals::START, median <= Duration::from_millis(30)).print();

    let daemon = Daemon::start();
    thread::sleep(Duration::from_secs(5));
    let resident = resident_bytes(daemon.pid()) as f64 / f64::from(1 << 20);
    let anonymous = anonymous_bytes(daemon.pid()) as f64 / f64::from(1 << 20);
    Row::new("idle memory after 5 s", format!("{resident:.1} MiB"))
        .beside(format!("of it {anonymous:.1} MiB without a file behind it"))
        .goal(&goals::IDLE_MEMORY, resident <= 15.0)
        .print();
    drop(daemon);
    idle();
}

/// Processor time with many agents and nothing due.
fn idle() {
    let (agents, secs) = (size("AGENTSVC_BENCH_AGENTS", 100_000, 10_000), size("AGENTSVC_BENCH_SECS", 30, 5) as u64);
    let daemon = Daemon::with(UNLIMITED);
    for first in (0..agents).step_by(BULK) {
        let items: Vec<_> = (first..agents.min(first + BULK))
            .map(|n| json!({ "manifest_toml": format!("name = \"n-{n}\"") }))
            .collect();
        let reply = daemon.post("/api/agents/bulk", &json!({ "agents": items }));
        assert!(reply.status < 300, "{}", reply.text());
    }
    thread::sleep(Duration::from_secs(5));
    let (before, begun) = (cpu_seconds(daemon.pid()), Instant::now());
    thread::sleep(Duration::from_secs(secs));
    let share = (cpu_seconds(daemon.pid()) - before) / begun.elapsed().as_secs_f64() * 100.0;
    let what = format!("idle CPU with {agents} agents, over {secs} s");
    Row::new(what, format!("{share:.2} % of a core")).goal(&goals::IDLE_CPU, share < 1.0).print();
}
