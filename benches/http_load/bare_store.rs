//! What durable requests are measured beside: the store's engine alone, set up as the daemon's, with as many records
//! and bytes for each request, written by one thread that joins whatever waits into one batch with one sync.
//!
//! What it leaves out is everything else: HTTP, the world, encoding, the audit chain's hashes, the input log.

use std::fmt;
use std::time::{Duration, Instant};

use fjall::config::FilterPolicy;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use tokio::sync::oneshot;

use crate::measure::{Run, metric};
use crate::support::daemon::Daemon;

/// As in `src/kernel/store/mod.rs`.
const MEMTABLE_BYTES: u64 = 8 << 20;
const CACHE_BYTES: u64 = 8 << 20;
const JOURNAL_BYTES: u64 = 64 << 20;
const WORKERS: usize = 2;
/// Bytes of a key: a kind and an id.
const KEY_BYTES: usize = 17;

/// What a daemon has written so far.
pub(crate) struct Written {
    records: f64,
    bytes: f64,
    pub(crate) batches: f64,
    at: Instant,
    /// Seconds that it took; of a difference.
    pub(crate) secs: f64,
}

impl Written {
    pub(crate) fn of(daemon: &Daemon) -> Self {
        let page = daemon.get("/api/metrics").text();
        Self {
            records: metric(&page, "agentsvc_store_records_total"),
            bytes: metric(&page, "agentsvc_store_bytes_total"),
            batches: metric(&page, "agentsvc_store_batches_total"),
            at: Instant::now(),
            secs: 0.0,
        }
    }

    pub(crate) fn since(self, before: &Self) -> Self {
        Self {
            records: self.records - before.records,
            bytes: self.bytes - before.bytes,
            batches: self.batches - before.batches,
            at: self.at,
            secs: (self.at - before.at).as_secs_f64(),
        }
    }

    /// What one of so many requests wrote, in so many commits one after the other.
    pub(crate) fn pattern(&self, requests: usize, commits: usize) -> Pattern {
        let each = |sum: f64| sum / requests as f64 / commits as f64;
        let records = each(self.records).round().max(1.0) as usize;
        Pattern { commits, records, bytes: (each(self.bytes) / records as f64) as usize }
    }
}

/// What a request writes.
#[derive(Clone, Copy)]
pub(crate) struct Pattern {
    /// Commits that follow each other.
    commits: usize,
    /// Records of each.
    records: usize,
    /// Bytes of a record, its key included.
    bytes: usize,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} records of {} B", self.commits, self.records, self.bytes)
    }
}

/// Records of one commit, and who waits for it.
struct Commit {
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    done: oneshot::Sender<()>,
}

/// So many clients for `time`; each writes, and waits, as a request of `pattern` does.
pub(crate) async fn drive(clients: usize, time: Duration, pattern: &Pattern) -> Run {
    let home = tempfile::tempdir().expect("a temporary directory");
    let database = Database::builder(home.path())
        .cache_size(CACHE_BYTES)
        .worker_threads(WORKERS)
        .max_journaling_size(JOURNAL_BYTES)
        .open()
        .expect("an empty store");
    let options = || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
    let world = database
        .keyspace("world", || options().filter_policy(FilterPolicy::disabled()).expect_point_read_hits(true))
        .expect("a keyspace");
    let content = database.keyspace("content", options).expect("a keyspace");
    let (commits, waiting) = crossbeam_channel::unbounded();
    let writer = std::thread::spawn(move || write(&database, &[world, content], &waiting));

    let begun = Instant::now();
    let local = tokio::task::LocalSet::new();
    let pattern = *pattern;
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let commits = commits.clone();
            local.spawn_local(async move {
                let (mut latencies, mut next) = (Vec::new(), (client as u64) << 40);
                while begun.elapsed() < time {
                    let sent = Instant::now();
                    for _ in 0..pattern.commits {
                        let (done, is_done) = oneshot::channel();
                        let rows = (0..pattern.records).map(|_| row(&mut next, pattern.bytes)).collect();
                        commits.send(Commit { rows, done }).expect("the writer runs");
                        is_done.await.expect("the writer writes");
                    }
                    latencies.push(sent.elapsed());
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::new();
    local
        .run_until(async {
            for task in tasks {
                latencies.extend(task.await.expect("no client panics"));
            }
        })
        .await;
    let elapsed = begun.elapsed();
    drop(commits);
    writer.join().expect("the writer does not panic");
    latencies.sort_unstable();
    Run { elapsed, latencies }
}

/// Joins what waits into one batch with one sync, until nobody sends any more.
fn write(database: &Database, keyspaces: &[Keyspace; 2], waiting: &crossbeam_channel::Receiver<Commit>) {
    while let Ok(first) = waiting.recv() {
        let mut group = vec![first];
        group.extend(waiting.try_iter());
        let mut batch = database.batch().durability(Some(PersistMode::SyncData));
        for commit in &mut group {
            for (n, (key, value)) in commit.rows.drain(..).enumerate() {
                batch.insert(&keyspaces[n % 2], key, value);
            }
        }
        batch.commit().expect("the store writes");
        for commit in group {
            // A client ends only behind its last commit.
            let _ = commit.done.send(());
        }
    }
}

/// A record that there was not yet. Its bytes repeat as little as ids and texts do.
fn row(next: &mut u64, bytes: usize) -> (Vec<u8>, Vec<u8>) {
    *next += 1;
    let mixed = next.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut key = vec![b'a'];
    key.extend_from_slice(&next.to_be_bytes());
    key.extend_from_slice(&mixed.to_be_bytes());
    let value = mixed.to_le_bytes().into_iter().cycle().take(bytes.saturating_sub(KEY_BYTES)).enumerate();
    (key, value.map(|(at, byte)| byte ^ (at as u8).wrapping_mul(31)).collect())
}
