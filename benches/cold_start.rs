//! How fast the daemon starts and how little it uses when nothing happens: `cargo bench --bench cold_start`.

#![allow(clippy::print_stdout, reason = "a measuring program prints its table")]

#[path = "../tests/support/mod.rs"]
mod harness;
mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use harness::daemon::{Daemon, command};
use serde_json::json;
use support::process::anonymous_bytes;
use support::{Row, UNLIMITED, cpu_seconds, goals, head, ms, resident_bytes, size};

/// Agents of one request.
const BULK: usize = 10_000;

fn main() {
    head("cold_start");
    let mut times: Vec<Duration> = (0..size("AGENTSVC_BENCH_STARTS", 20, 5)).map(|_| start()).collect();
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

/// A daemon that is killed whatever comes.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One start on an empty home; the time from exec to the first 200 of `/api/health`.
fn start() -> Duration {
    let home = tempfile::tempdir().expect("a temporary directory");
    // The port is free now and very likely still is in a moment.
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let addr = listener.local_addr().expect("a bound socket has an address");
    drop(listener);
    fs::write(home.path().join("config.toml"), format!("api_listen = \"{addr}\"\n")).expect("a file is written");
    let mut command = command(home.path());
    command.arg("start").stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    let _running = Running(command.spawn().expect("the binary starts"));
    while !healthy(addr) {
        assert!(begun.elapsed() < Duration::from_secs(10), "the daemon does not answer");
        thread::sleep(Duration::from_micros(100));
    }
    begun.elapsed()
}

fn healthy(addr: std::net::SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(addr) else { return false };
    // One that takes the connection and says nothing must not hold up the look at the clock.
    let timeout = Some(Duration::from_secs(1));
    let mut answer = [0; 12];
    stream.set_read_timeout(timeout).is_ok()
        && stream.set_write_timeout(timeout).is_ok()
        && stream.write_all(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && answer.ends_with(b"200")
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
