//! Reads of what is large, many at once: their memory is taken before it is used, so that all of them together have a bound.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;

use super::harness::{Neighbour, harness, resident};
use crate::support::daemon::Daemon;

/// Requests at once.
const AT_ONCE: usize = 64;
/// Bytes that the process may take on top, far above the 128 MiB of one address, and far below what the answers have.
const GROWTH_MAX: u64 = 512 << 20;

/// Reads an answer to its end and forgets it; the beginning, and the bytes.
fn drain(daemon: &Daemon, path: &str) -> (String, usize) {
    let mut stream = daemon.connect().expect("a connection");
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("a request");
    let (mut first, mut all, mut buffer) = (Vec::new(), 0, vec![0; 256 << 10]);
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        all += read;
        if first.len() < 1_024 {
            first.extend_from_slice(&buffer[..read.min(1_024)]);
        }
    }
    (String::from_utf8_lossy(&first).into_owned(), all)
}

/// Reads `path` from many connections at once; the answers with 200, and the bytes that the process took on top.
fn flood(daemon: &Daemon, path: &str, whole: usize) -> (usize, u64) {
    let (before, most, is_over) = (resident(daemon), AtomicU64::new(0), AtomicBool::new(false));
    let answered = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                most.fetch_max(resident(daemon), Ordering::Relaxed);
                std::thread::park_timeout(Duration::from_millis(10));
            }
        });
        let readers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(|| drain(daemon, path))).collect();
        let mut answered = 0;
        for reader in readers {
            let (head, bytes) = reader.join().expect("a reader");
            if head.starts_with("HTTP/1.1 200") {
                assert!(bytes >= whole, "{path}: {bytes} bytes of {whole}");
                answered += 1;
            } else {
                assert!(head.starts_with("HTTP/1.1 503") && head.contains("answers_full"), "{head}");
                assert!(head.contains("retry-after"), "{head}");
            }
        }
        is_over.store(true, Ordering::Relaxed);
        answered
    });
    let growth = most.load(Ordering::Relaxed).saturating_sub(before);
    eprintln!("{path}: {answered} of {AT_ONCE} answered, {:.1} MiB more in memory", growth as f64 / f64::from(1 << 20));
    (answered, growth)
}

#[test]
fn many_reads_of_a_large_memory_have_a_bound() {
    let daemon = harness("");
    let (agent, neighbour) = (daemon.agent("a"), Neighbour::of(&daemon));
    let value = "v".repeat(60_000);
    for part in 0..10 {
        let entries: Vec<_> = (0..25).map(|n| json!({ "key": format!("k{part}-{n}"), "value": value })).collect();
        daemon.post(&format!("/api/agents/{agent}/memory/import"), &json!({ "entries": entries })).expect(200);
    }
    for path in [format!("/api/memory/agents/{agent}/kv"), format!("/api/agents/{agent}/memory/export")] {
        let (answered, growth) = flood(&daemon, &path, 15_000_000);
        assert!(answered > 0 && growth < GROWTH_MAX, "{path}: {answered} answered, {growth} bytes more in memory");
        neighbour.is_served();
    }
    let (answered, growth) = flood(&daemon, &format!("/api/memory/agents/{agent}/kv?limit=1000"), 512 << 10);
    assert!(answered > 0 && growth < GROWTH_MAX, "{answered} answered, {growth} bytes more in memory");
    neighbour.leave();
}
