//! What an agent with its session costs in memory: `cargo bench --bench all -- agent_memory`.
//!
//! `AGENTSVC_BENCH_AGENTS` is how many are made, 1,000,000 unless set.

use std::fmt::Write;
use std::thread;
use std::time::{Duration, Instant};

use crate::measure::{Row, UNLIMITED, goals, head, resident_bytes, size};
use crate::support::daemon::Daemon;

/// Agents in one request.
const BATCH: usize = 10_000;

pub(crate) fn main() {
    let count = size("AGENTSVC_BENCH_AGENTS", 1_000_000, 50_000);
    let daemon = Daemon::with(UNLIMITED);
    let before = settled(daemon.pid());
    let begun = Instant::now();
    for batch in 0..count.div_ceil(BATCH) {
        let items = (0..BATCH.min(count - batch * BATCH)).fold(String::new(), |mut items, n| {
            let comma = if n == 0 { "" } else { "," };
            write!(items, r#"{comma}{{"manifest_toml":"name = \"n-{batch}-{n}\""}}"#).expect("a string takes text");
            items
        });
        let body = format!(r#"{{"agents":[{items}]}}"#);
        let reply = daemon.send("POST", "/api/agents/bulk", &[], Some(body.as_bytes()));
        assert!(reply.status < 300, "{}", reply.text());
    }
    let made = begun.elapsed();
    let after = settled(daemon.pid());
    let each = after.saturating_sub(before) as f64 / count as f64;
    head("agent_memory");
    let result = format!("{each:.0} B ({} MiB to {} MiB)", before >> 20, after >> 20);
    let what = format!("memory per agent with its session, {count} agents");
    Row::new(what, result).goal(&goals::AGENT_MEMORY, each <= 600.0).print();
    let result = format!("{:.1} s, {:.0}/s", made.as_secs_f64(), count as f64 / made.as_secs_f64());
    Row::new(format!("making {count} agents, {BATCH} a request"), result).print();
}

/// Resident bytes once they have stayed the same (within a MiB) for three seconds.
fn settled(pid: u32) -> u64 {
    let (mut last, mut since) = (resident_bytes(pid), Instant::now());
    let begun = Instant::now();
    while since.elapsed() < Duration::from_secs(3) && begun.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(200));
        let now = resident_bytes(pid);
        if now.abs_diff(last) > 1 << 20 {
            (last, since) = (now, Instant::now());
        }
    }
    resident_bytes(pid)
}
