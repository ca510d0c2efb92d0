//! The writer and the sweeper.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use agentsvc_components::agent::sweep::AgentSwept;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_components::session::sweep::{LogSwept, SweepLog};
use agentsvc_components::usage::record::UsageSwept;
use agentsvc_components::{AgentId, LogId, Timestamp, TurnId};
use agentsvc_systems::kernel::engine::Commit;
use agentsvc_systems::kernel::record::{self, MessageKey, VERSION, memory_key, message_key, trace_key};
use agentsvc_systems::proactive_memory::keys::{entry_key, owner_key, user_key};
use agentsvc_systems::usage::{active_key, usage_key};
use crossbeam_channel::{Receiver, Sender};

use super::*;
use crate::kernel::store::journal::refusing::Refusing;
use crate::kernel::store::sweep::Sweeper;
use crate::kernel::store::writer::{Outlets, Stuck, Writer};

/// What came out of the writer, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Release(u32),
    Sweep(u64),
    Event,
    Reopen(Stuck),
    Fenced,
    Fatal,
}

/// Outlets that note what they get.
pub(super) fn outlets() -> (Outlets, Sender<Seen>, Receiver<Seen>) {
    let (note, seen) = crossbeam_channel::unbounded();
    let (effects, events, reopen) = (note.clone(), note.clone(), note.clone());
    let (fenced, fatal) = (note.clone(), note.clone());
    let outlets = Outlets {
        effects: Arc::new(move |effect| {
            let Some(SweepLog(log)) = effect.get() else { panic!("unexpected {effect:?}") };
            effects.send(Seen::Sweep(log.0)).unwrap();
        }),
        told: Arc::new(move |_| events.send(Seen::Event).unwrap()),
        reopen: Arc::new(move |why| reopen.send(Seen::Reopen(why)).unwrap()),
        fenced: Arc::new(move |_| fenced.send(Seen::Fenced).unwrap()),
        fatal: Arc::new(move |_| fatal.send(Seen::Fatal).unwrap()),
    };
    (outlets, note, seen)
}

pub(super) fn put(key: &[u8], value: &[u8]) -> Op {
    Op { space: Space::World, key: key.to_vec(), value: Some(value.to_vec()) }
}

/// A commit of `ops` whose release is noted as `number`.
pub(super) fn commit(ops: Vec<Op>, number: u32, note: &Sender<Seen>) -> Commit {
    let note = note.clone();
    Commit { ops, releases: vec![Box::new(move || note.send(Seen::Release(number)).unwrap())], ..Commit::default() }
}

/// Holds the writer in a release until the returned sender is dropped.
fn hold(writer: &Writer) -> Sender<()> {
    let (go, wait) = crossbeam_channel::bounded::<()>(0);
    let (there, arrived) = crossbeam_channel::bounded(1);
    let release = move || {
        there.send(()).unwrap();
        let _ = wait.recv();
    };
    writer.queue().send(Commit { releases: vec![Box::new(release)], ..Commit::default() });
    arrived.recv().unwrap();
    go
}

#[test]
fn commits_that_wait_join_in_one_batch_and_are_let_go_in_order() {
    let (home, store) = store();
    let (outlets, note, seen) = outlets();
    let writer = Writer::start(store.clone(), outlets).unwrap();
    let queue = writer.queue();
    let held = hold(&writer);
    for number in 0..100 {
        let mut commit = commit(vec![put(b"a1", &[u8::try_from(number).unwrap()])], number, &note);
        commit.effects.push(SweepLog(LogId(u64::from(number))).into());
        commit.told.push(Box::new("something happened"));
        queue.send(commit);
    }
    assert!(queue.backlog_bytes() > 100 * 3 && !queue.is_full());
    drop(held);
    queue.flush().unwrap();
    assert_eq!(queue.backlog_bytes(), 0);
    for number in 0..100 {
        assert_eq!(seen.try_recv(), Ok(Seen::Release(number)));
        assert_eq!(seen.try_recv(), Ok(Seen::Sweep(u64::from(number))));
        assert_eq!(seen.try_recv(), Ok(Seen::Event));
    }
    let stats = store.stats();
    assert_eq!(stats.batches.load(Ordering::Relaxed), 1, "one fsync for all");
    assert_eq!((stats.commits.load(Ordering::Relaxed), stats.ops.load(Ordering::Relaxed)), (101, 1));
    assert_eq!(stats.commit_time.snapshot().count, 1);
    writer.stop();
    drop((queue, store));
    let store = Store::open(home.path().join("world")).unwrap();
    assert_eq!(world_rows(&store), [(b"a1".to_vec(), vec![99])]);
}

#[test]
fn a_release_sees_its_records_on_disk() {
    let (home, store) = store();
    let (outlets, _note, _seen) = outlets();
    let writer = Writer::start(store, outlets).unwrap();
    // The journal as it is on disk at the moment of the release, copied as a kill would leave it.
    let (from, to) = (home.path().join("world"), home.path().join("copy"));
    let release = {
        let to = to.clone();
        move || copy_dir(&from, &to)
    };
    let ops = vec![put(b"a1", b"one")];
    writer.queue().send(Commit { ops, releases: vec![Box::new(release)], ..Commit::default() });
    writer.queue().flush().unwrap();
    let copy = Store::open(to).unwrap();
    assert_eq!(world_rows(&copy), [(b"a1".to_vec(), b"one".to_vec())]);
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn what_has_no_records_waits_for_no_fsync() {
    let (_home, store) = store();
    let (outlets, note, seen) = outlets();
    let writer = Writer::start(store.clone(), outlets).unwrap();
    writer.queue().send(commit(vec![], 7, &note));
    writer.queue().flush().unwrap();
    assert_eq!(seen.try_recv(), Ok(Seen::Release(7)));
    assert_eq!(store.stats().batches.load(Ordering::Relaxed), 0);
}

#[test]
fn stopping_writes_what_waits() {
    let (home, store) = store();
    let (outlets, note, seen) = outlets();
    let writer = Writer::start(store, outlets).unwrap();
    let held = hold(&writer);
    let queue = writer.queue();
    queue.send(commit(vec![put(b"a1", b"1")], 1, &note));
    drop(held);
    writer.stop();
    assert_eq!(seen.try_recv(), Ok(Seen::Release(1)));
    assert!(matches!(queue.flush(), Err(Error::Poisoned)));
    assert_eq!(world_rows(&Store::open(home.path().join("world")).unwrap()).len(), 1);
}

#[test]
fn after_a_failed_write_nothing_is_let_go() {
    let (_home, store) = store();
    let (outlets, note, seen) = outlets();
    let writer = Writer::start(store, outlets).unwrap();
    let queue = writer.queue();
    let held = hold(&writer);
    // A key of no bytes is refused by the engine with a panic, which stands here for any failure to write.
    queue.send(commit(vec![put(b"", b"x")], 1, &note));
    queue.send(commit(vec![put(b"a1", b"x")], 2, &note));
    drop(held);
    assert_eq!(seen.recv(), Ok(Seen::Fatal));
    assert!(matches!(queue.flush(), Err(Error::Poisoned)));
    assert!(queue.is_full(), "no write is taken any more");
    queue.send(commit(vec![], 3, &note));
    writer.stop();
    assert!(seen.try_recv().is_err(), "nothing is let go");
}

#[test]
fn the_backlog_closes_the_gate_and_opens_it_again() {
    let (_home, store) = store();
    let (outlets, note, _seen) = outlets();
    let writer = Writer::start(store, outlets).unwrap();
    let queue = writer.queue();
    let held = hold(&writer);
    let block = vec![0_u8; 1 << 20];
    for number in 0..u32::try_from(limit::STORE_BACKLOG_BYTES_MAX >> 20).unwrap() {
        assert!(!queue.is_full());
        let key = [&b"a"[..], &number.to_be_bytes()].concat();
        queue.send(commit(vec![put(&key, &block)], number, &note));
    }
    assert!(queue.is_full());
    drop(held);
    queue.flush().unwrap();
    assert!(!queue.is_full());
    writer.stop();
}

#[test]
fn a_sweep_erases_one_log_and_reports_it() {
    const ROWS: u32 = 10_000;
    let (home, store) = store();
    let (outlets, _note, _seen) = outlets();
    let writer = Writer::start(store.clone(), outlets).unwrap();
    let row = |log, ordinal| {
        let key = message_key(MessageKey { log: LogId(log), ordinal, index: 0 });
        Op { space: Space::Content, key, value: Some(vec![1; 20]) }
    };
    let mut ops: Vec<Op> = (0..ROWS).map(|ordinal| row(5, ordinal)).collect();
    ops.extend([row(4, 1), row(6, 1)]);
    writer.queue().send(Commit { ops, ..Commit::default() });
    writer.queue().flush().unwrap();

    let (swept, reports) = crossbeam_channel::unbounded();
    let report = Arc::new(move |outcome| swept.send(outcome).unwrap());
    let sweeper = Sweeper::start(store.clone(), writer.queue(), report).unwrap();
    // Commits go on meanwhile.
    let busy = Arc::new(AtomicBool::new(true));
    let traffic = {
        let (queue, busy) = (writer.queue(), busy.clone());
        std::thread::spawn(move || {
            while busy.load(Ordering::Relaxed) {
                queue.send(Commit { ops: vec![put(b"a1", b"busy")], ..Commit::default() });
                queue.flush().unwrap();
            }
        })
    };
    // Twice: a sweep that was done already is simply done again.
    for _ in 0..2 {
        sweeper.queue().sweep(crate::session::swept(LogId(5)));
        assert_eq!(reports.recv().unwrap().get(), Some(&LogSwept(LogId(5))));
    }
    busy.store(false, Ordering::Relaxed);
    traffic.join().unwrap();
    assert_eq!(store.stats().rows_erased.load(Ordering::Relaxed), u64::from(ROWS));
    sweeper.stop();
    writer.stop();
    drop(store);
    let store = Store::open(home.path().join("world")).unwrap();
    assert_eq!(store.content.iter().count(), 2, "the neighbours are untouched");
}

#[test]
fn what_leads_to_the_entries_of_an_agent_is_erased_with_them() {
    let (home, store) = store();
    let (outlets, _note, _seen) = outlets();
    let writer = Writer::start(store.clone(), outlets).unwrap();
    let (gone, kept) = (AgentId(uuid::Uuid::from_u128(7)), AgentId(uuid::Uuid::from_u128(8)));
    let rows = |agent: AgentId, n: u128| {
        let id = MemoryEntryId(uuid::Uuid::from_u128(n));
        let user = n.is_multiple_of(2).then(|| "ana".into());
        let record = MemoryEntryRecord { content: "x".into(), user, ..MemoryEntryRecord::default() };
        let op = |key, value| Op { space: Space::Content, key, value: Some(value) };
        let mut ops = vec![op(entry_key(agent, id), record::encode(&record)), op(owner_key(id, agent), vec![VERSION])];
        ops.extend(record.user.as_ref().map(|user| op(user_key(user, agent, id), vec![VERSION])));
        ops
    };
    let own: Vec<Op> = (0..3_000).flat_map(|n| rows(gone, n)).collect();
    let others = rows(kept, 3_000);
    let (count, left) = (own.len(), others.len());
    writer.queue().send(Commit { ops: own.into_iter().chain(others).collect(), ..Commit::default() });
    writer.queue().flush().unwrap();
    let (swept, reports) = crossbeam_channel::unbounded();
    let report = Arc::new(move |outcome| swept.send(outcome).unwrap());
    let sweeper = Sweeper::start(store.clone(), writer.queue(), report).unwrap();
    sweeper.queue().sweep(crate::agent::swept(gone));
    assert_eq!(reports.recv().unwrap().get(), Some(&AgentSwept(gone)));
    assert_eq!(store.stats().rows_erased.load(Ordering::Relaxed), count as u64);
    sweeper.stop();
    writer.stop();
    drop(store);
    let store = Store::open(home.path().join("world")).unwrap();
    assert_eq!(store.content.iter().count(), left, "those of the other agent stay");
}

#[test]
fn usage_events_are_erased_up_to_the_moment_and_no_others() {
    const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
    let (home, store) = store();
    let (outlets, _note, _seen) = outlets();
    let writer = Writer::start(store.clone(), outlets).unwrap();
    let agent = AgentId(uuid::Uuid::from_u128(7));
    let before = Timestamp(20_000 * DAY_MS);
    let op = |key| Op { space: Space::Content, key, value: Some(vec![1; 20]) };
    let event = |at: i64, turn: u128| {
        let attempt = Attempt { job: JobId(uuid::Uuid::from_u128(turn)), number: 1 };
        op(usage_key(Timestamp(at), attempt, 0))
    };
    // More than one chunk of old ones, the last a millisecond too old; one of the very moment, and later ones.
    let mut ops: Vec<Op> = (1..=5_000).map(|n| event(before.0 - n, n.unsigned_abs().into())).collect();
    let kept = [event(before.0, 1), event(before.0 + 1, 2), event(before.0 + DAY_MS, 3)];
    let (gone_day, kept_day) = (op(active_key(19_999, agent)), op(active_key(20_000, agent)));
    ops.extend(kept.iter().cloned().chain([gone_day.clone(), kept_day.clone()]));
    // Rows of other kinds, right beside them in the order of keys.
    let neighbours = [op(vec![b'a'; 30]), op(vec![b'c'; 30])];
    ops.extend(neighbours.iter().cloned());
    writer.queue().send(Commit { ops, ..Commit::default() });
    writer.queue().flush().unwrap();
    let (swept, reports) = crossbeam_channel::unbounded();
    let report = Arc::new(move |outcome| swept.send(outcome).unwrap());
    let sweeper = Sweeper::start(store.clone(), writer.queue(), report).unwrap();
    sweeper.queue().sweep(crate::usage::swept(before));
    assert_eq!(reports.recv().unwrap().get(), Some(&UsageSwept(before)));
    // A clock that is not believed at all erases nothing.
    sweeper.queue().sweep(crate::usage::swept(Timestamp(-1)));
    assert_eq!(reports.recv().unwrap().get(), Some(&UsageSwept(Timestamp(0))));
    sweeper.stop();
    writer.stop();
    drop(store);
    let store = Store::open(home.path().join("world")).unwrap();
    let left: Vec<Vec<u8>> = store.content.iter().map(|row| row.key().unwrap().to_vec()).collect();
    let expected = kept.iter().chain([&kept_day]).chain(&neighbours);
    assert!(expected.clone().all(|op| left.contains(&op.key)) && !left.contains(&gone_day.key));
    assert_eq!(left.len(), expected.count());
}

#[test]
fn an_agent_s_traces_are_trimmed_to_the_newest_and_go_with_it() {
    let (home, store) = store();
    let (outlets, _note, _seen) = outlets();
    let writer = Writer::start(store.clone(), outlets).unwrap();
    let (busy, quiet) = (AgentId(uuid::Uuid::from_u128(7)), AgentId(uuid::Uuid::from_u128(8)));
    let trace = |agent, turn: u128| {
        let key = trace_key(agent, TurnId(uuid::Uuid::from_u128(turn)));
        Op { space: Space::Content, key, value: Some(vec![1; 20]) }
    };
    let entry = |agent| Op { space: Space::Content, key: memory_key(agent, "k"), value: Some(vec![1; 20]) };
    let count = limit::TRACES_MAX as u128 + 1_500;
    let mut ops: Vec<Op> = (0..count).map(|turn| trace(busy, turn)).collect();
    ops.extend([trace(quiet, 1), entry(busy), entry(quiet)]);
    writer.queue().send(Commit { ops, ..Commit::default() });
    writer.queue().flush().unwrap();

    let (swept, reports) = crossbeam_channel::unbounded();
    let sweeper =
        Sweeper::start(store.clone(), writer.queue(), Arc::new(move |outcome| swept.send(outcome).unwrap())).unwrap();
    sweeper.queue().sweep(crate::turn::swept(busy));
    sweeper.queue().sweep(crate::agent::swept(quiet));
    assert_eq!(reports.recv().unwrap().get(), Some(&AgentSwept(quiet)));
    let left: Vec<Vec<u8>> = store.content.iter().map(|row| row.key().unwrap().to_vec()).collect();
    assert_eq!(left.len(), limit::TRACES_MAX + 1, "the newest traces and one entry");
    assert!(left.contains(&trace(busy, count - 1).key) && !left.contains(&trace(busy, 1_499).key));
    sweeper.queue().sweep(crate::agent::swept(busy));
    assert_eq!(reports.recv().unwrap().get(), Some(&AgentSwept(busy)));
    assert_eq!(store.content.iter().count(), 0);
    sweeper.stop();
    writer.stop();
    drop((store, home));
}

#[test]
fn a_store_that_found_no_room_is_to_be_opened_anew_and_one_that_failed_ends_the_process() {
    for (kind, seen_last) in
        [(io::ErrorKind::StorageFull, Seen::Reopen(Stuck::Full)), (io::ErrorKind::Other, Seen::Fatal)]
    {
        let (_home, store) = store();
        let (outlets, note, seen) = outlets();
        let journal = Refusing(move || Error::Io { path: "world".into(), source: kind.into() });
        let writer = Writer::start_with(store.clone(), outlets, None, Box::new(journal)).unwrap();
        let queue = writer.queue();
        queue.send(commit(vec![put(b"a1", b"x")], 1, &note));
        assert_eq!(seen.recv(), Ok(seen_last), "and nothing is let go");
        assert!(queue.is_full() && queue.flush().is_err());
        assert_eq!(queue.is_read_only(), kind == io::ErrorKind::StorageFull);
        writer.stop();
        assert_eq!(world_rows(&store), []);
        assert!(seen.is_empty());
    }
}
