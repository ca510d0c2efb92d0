//! What every journal must do, and one in memory that keeps encoded entries.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use agentsvc_components::agent::sweep::AgentSwept;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::kernel::step::StepMark;
use agentsvc_components::session::sweep::LogSwept;
use agentsvc_components::usage::record::UsageSwept;
use agentsvc_components::{AgentId, LogId, Timestamp, TurnId};
use agentsvc_systems::kernel::engine::Commit;
use agentsvc_systems::kernel::record::{MessageKey, memory_key, message_key, trace_key};
use agentsvc_systems::usage::active_key;
use parking_lot::Mutex;
use proptest::prelude::*;

use super::writing::{Seen, commit, outlets, put};
use super::*;
use crate::kernel::store::journal::entry::{Body, Entry, Position};
use crate::kernel::store::journal::{Entries, Journal, Local, POSITION_KEY};
use crate::kernel::store::sweep::Sweeper;
use crate::kernel::store::writer::{CommitQueue, Writer};

/// A log that several nodes append to: encoded entries by number.
#[derive(Default)]
struct Log {
    entries: BTreeMap<u64, Vec<u8>>,
    last: u64,
    /// Takes an append that expects another number than it gets, as a broken compare-and-set does.
    takes_all: bool,
}

/// One node's handle of a [`Log`].
struct Memory {
    log: Arc<Mutex<Log>>,
    /// The newest valid entry.
    newest: Position,
    /// The number that the next append expects.
    next: u64,
    /// The numbers that appended entries got, by those that they expected.
    got: BTreeMap<u64, u64>,
}

impl Memory {
    fn new(log: &Arc<Mutex<Log>>) -> Self {
        Self { log: log.clone(), newest: Position::default(), next: 1, got: BTreeMap::new() }
    }
}

impl Journal for Memory {
    fn open(&mut self, node: &str) -> Result<(), Error> {
        let newest = self.read(&Position::default())?.last().transpose()?;
        self.newest = newest.map_or(Position::default(), |entry| entry.position);
        self.next = self.log.lock().last + 1;
        let position = self.append(&Body::Open { node: node.into() })?.unwrap();
        self.acknowledged(&position)
    }

    fn append(&mut self, body: &Body<'_>) -> Result<Option<Position>, Error> {
        let (position, encoded) = self.newest.encode(self.next, body).unwrap();
        let mut log = self.log.lock();
        if log.last + 1 != self.next && !log.takes_all {
            return Err(Error::Fenced { epoch: self.newest.epoch + 1 });
        }
        log.last += 1;
        let got = log.last;
        log.entries.insert(got, encoded);
        self.got.insert(self.next, got);
        (self.newest, self.next) = (position, self.next + 1);
        Ok(Some(position))
    }

    fn acknowledged(&mut self, position: &Position) -> Result<(), Error> {
        let got = self.got.remove(&position.index);
        if got == Some(position.index) { Ok(()) } else { Err(Error::Fenced { epoch: position.epoch + 1 }) }
    }

    fn read(&self, position: &Position) -> Result<Entries<'_>, Error> {
        let (mut newest, log) = (*position, self.log.lock());
        let entries: Vec<_> = log.entries.range(position.index + 1..).map(|(at, it)| (*at, it.clone())).collect();
        if entries.first().is_some_and(|(at, _)| *at != position.index + 1) {
            return Err(Error::Rows { source: "entries behind it were trimmed".into() });
        }
        Ok(Box::new(entries.into_iter().filter_map(move |(at, encoded)| {
            let entry =
                newest.accept(at, &encoded).map_err(|error| Error::Rows { source: error.into() }).transpose()?;
            Some(entry.inspect(|entry| newest = entry.position))
        })))
    }

    fn trim(&mut self, index: u64) -> Result<(), Error> {
        self.log.lock().entries.retain(|at, _| *at > index);
        Ok(())
    }
}

/// All rows of both spaces but the format, the step mark among them.
fn all_rows(store: &Store) -> Vec<(Space, Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    for space in [Space::World, Space::Content] {
        let of = store.keyspace(space).iter().map(|row| row.into_inner().unwrap());
        rows.extend(of.map(|(key, value)| (space, key.to_vec(), value.to_vec())));
    }
    rows.retain(|(_, key, _)| key.as_slice() != FORMAT_KEY);
    rows
}

fn content(key: Vec<u8>) -> Op {
    Op { space: Space::Content, key, value: Some(vec![7; 30]) }
}

fn agent(id: u128) -> AgentId {
    AgentId(uuid::Uuid::from_u128(id))
}

/// Rows of every sort that is erased, and rows beside them that stay.
fn rows_to_erase() -> Vec<Op> {
    let message = |log, ordinal| content(message_key(MessageKey { log: LogId(log), ordinal, index: 0 }));
    let mut ops: Vec<Op> = (0..3_000).map(|ordinal| message(5, ordinal)).collect();
    ops.extend([message(6, 1), content(memory_key(agent(1), "k")), content(memory_key(agent(2), "k"))]);
    let trace = |turn| content(trace_key(agent(2), TurnId(uuid::Uuid::from_u128(turn))));
    ops.extend((0..agentsvc_components::kernel::limit::TRACES_MAX as u128 + 10).map(trace));
    ops.extend((1..1_500).map(|day| content(active_key(day, agent(2)))));
    ops
}

/// Sweeps everything of [`rows_to_erase`] that can be swept.
fn sweep(store: &Store, queue: CommitQueue) {
    let (swept, reports) = crossbeam_channel::unbounded();
    let sweeper = Sweeper::start(store.clone(), queue, Arc::new(move |it| swept.send(it).unwrap())).unwrap();
    let log = crate::session::swept(LogId(5));
    let before = Timestamp(1_200 * 24 * 60 * 60 * 1_000);
    for what in [log, crate::turn::swept(agent(2)), crate::usage::swept(before), crate::agent::swept(agent(1))] {
        sweeper.queue().sweep(what);
    }
    assert_eq!(reports.recv().unwrap().get(), Some(&LogSwept(LogId(5))));
    assert_eq!(reports.recv().unwrap().get(), Some(&UsageSwept(before)));
    assert!(reports.recv().unwrap().is::<AgentSwept>());
    sweeper.stop();
}

/// What every journal must do for the writer: what is let go is in the store, and stays there; where the journal keeps
/// entries, they give the same rows in an empty store, erasures included.
fn conforms(new: &dyn Fn() -> Box<dyn Journal>) {
    let (home, store) = store();
    let mut journal = new();
    journal.open("first").unwrap();
    assert_eq!(store.catch_up(&*journal).unwrap(), u64::from(journal.read(&Position::default()).unwrap().count() > 0));
    let (outlets, note, seen) = outlets();
    let writer = Writer::start_with(store.clone(), outlets, None, journal).unwrap();
    let queue = writer.queue();
    let step = |number| StepMark { number, at: Timestamp(5) };
    queue.send(Commit { step: step(1), ..commit(rows_to_erase(), 0, &note) });
    for number in 1..=200 {
        let [key, value] = [[b'a', number % 7], [b'v', number]];
        let gone = Op { space: Space::World, key: vec![b'a', (number + 3) % 7], value: None };
        queue.send(Commit {
            step: step(1 + u64::from(number)),
            ..commit(vec![put(&key, &value), gone], number.into(), &note)
        });
    }
    queue.flush().unwrap();
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), (0..=200).map(Seen::Release).collect::<Vec<_>>());
    let before = all_rows(&store).len();
    sweep(&store, writer.queue());
    queue.send(Commit { step: step(300), ..commit(vec![put(b"b", b"the last")], 300, &note) });
    writer.stop();
    let rows = all_rows(&store);
    assert!(before - rows.len() > 3_000 + 10 + 1_000, "they were erased");
    let position = store.position().unwrap();
    drop((store, queue));
    let store = Store::open(home.path().join("world")).unwrap();
    assert_eq!(all_rows(&store), rows);
    assert_eq!(store.view().step().unwrap(), step(300));

    let journal = new();
    assert_eq!(store.catch_up(&*journal).unwrap(), 0, "the store was never behind what was let go");
    let (_other_home, other) = super::store();
    let applied = other.catch_up(&*journal).unwrap();
    assert_eq!(applied, position.index, "an entry for each batch and the taking over");
    if applied > 0 {
        assert_eq!(all_rows(&other), rows, "byte for byte");
        assert_eq!(other.catch_up(&*journal).unwrap(), 0);
    }
}

#[test]
fn the_local_journal_conforms_and_costs_no_row() {
    conforms(&|| Box::new(Local));
    let (_home, store) = store();
    let writer = Writer::start(store.clone(), outlets().0).unwrap();
    writer.queue().send(Commit { ops: vec![put(b"a1", b"one")], ..Commit::default() });
    writer.stop();
    assert_eq!(store.world.get(POSITION_KEY).unwrap(), None);
}

#[test]
fn a_journal_in_memory_conforms() {
    let log = Arc::default();
    conforms(&|| Box::new(Memory::new(&log)));
}

#[test]
fn what_was_fenced_releases_nothing_and_no_reader_sees_it() {
    // Refused at once, or taken by a broken compare-and-set: it makes no difference.
    for takes_all in [false, true] {
        let log = Arc::new(Mutex::new(Log { takes_all, ..Log::default() }));
        let ((_home_1, first), (_home_2, second), (_home_3, reader)) = (store(), store(), store());
        let start = |store: &Store| {
            let mut journal = Memory::new(&log);
            journal.open("node").unwrap();
            store.catch_up(&journal).unwrap();
            let (outlets, note, seen) = outlets();
            (Writer::start_with(store.clone(), outlets, None, Box::new(journal)).unwrap(), note, seen)
        };
        let (old, old_note, old_seen) = start(&first);
        old.queue().send(commit(vec![put(b"a1", b"of the first")], 1, &old_note));
        old.queue().flush().unwrap();
        let (new, new_note, new_seen) = start(&second);
        old.queue().send(commit(vec![put(b"a1", b"of the fenced one")], 2, &old_note));
        assert_eq!([old_seen.recv().unwrap(), old_seen.recv().unwrap()], [Seen::Release(1), Seen::Fenced]);
        assert!(matches!(old.queue().flush(), Err(Error::Poisoned)));
        let untouched = first.world.get("a1").unwrap().unwrap();
        assert_eq!(&*untouched, b"of the first", "nor is it in its store");
        if !takes_all {
            new.queue().send(commit(vec![put(b"a2", b"of the second")], 3, &new_note));
            new.queue().flush().unwrap();
            assert_eq!(new_seen.try_recv(), Ok(Seen::Release(3)));
        }
        old.stop();
        new.stop();
        reader.catch_up(&Memory::new(&log)).unwrap();
        assert_eq!(all_rows(&reader), all_rows(&second));
        // A third owner goes on behind what is void.
        let (third, note, seen) = start(&second);
        third.queue().send(commit(vec![put(b"a3", b"of the third")], 4, &note));
        third.queue().flush().unwrap();
        assert_eq!(seen.try_recv(), Ok(Seen::Release(4)));
        third.stop();
        reader.catch_up(&Memory::new(&log)).unwrap();
        assert_eq!(all_rows(&reader), all_rows(&second));
    }
}

#[test]
fn what_stands_behind_a_lost_entry_is_void_and_what_was_trimmed_is_an_error() {
    let log = Arc::default();
    let mut journal = Memory::new(&log);
    journal.open("node").unwrap();
    for snapshot in ["a", "b", "c", "d"] {
        journal.append(&Body::Rebase { snapshot: snapshot.into() }).unwrap();
    }
    let lost = log.lock().entries.remove(&3).unwrap();
    let start = Position::default();
    assert_eq!(journal.read(&start).unwrap().count(), 2, "the taking over and the one before the lost one");
    log.lock().entries.insert(3, lost);
    let entries: Vec<Entry> = journal.read(&start).unwrap().map(Result::unwrap).collect();
    assert_eq!(entries.len(), 5);
    assert_eq!(entries[4].position, journal.newest);
    journal.trim(2).unwrap();
    assert!(journal.read(&start).is_err());
    assert_eq!(journal.read(&entries[1].position).unwrap().count(), 3);
}

fn body() -> impl Strategy<Value = Body<'static>> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..40);
    let space = prop_oneof![Just(Space::World), Just(Space::Content)];
    let op = (space, bytes(), prop::option::of(bytes())).prop_map(|(space, key, value)| Op { space, key, value });
    let step =
        prop::option::of((any::<u64>(), any::<i64>()).prop_map(|(number, at)| StepMark { number, at: Timestamp(at) }));
    let (ops, erased) = (prop::collection::vec(op, 0..9), prop::collection::vec(bytes(), 0..9));
    prop_oneof![
        "[a-z]{0,9}".prop_map(|node| Body::Open { node: Cow::Owned(node) }),
        (step, ops, erased).prop_map(|(step, ops, erased)| Body::Step { step, ops: ops.into(), erased: erased.into() }),
        "[a-z]{0,9}".prop_map(|snapshot| Body::Rebase { snapshot: Cow::Owned(snapshot) }),
        Just(Body::Close),
    ]
}

proptest! {
    #[test]
    fn an_entry_is_read_as_it_was_written_and_any_other_byte_is_noticed(
        body in body(),
        (world, epoch, index) in (any::<u16>(), 0..u64::MAX - 1, 0..u64::MAX - 1),
        hash in any::<[u8; 32]>(),
        (at, flip) in (any::<prop::sample::Index>(), 1_u8..),
    ) {
        let before = Position { world, epoch, index, hash };
        prop_assert_eq!(Position::from_bytes(&before.to_bytes()), Some(before));
        let (position, mut encoded) = before.encode(index + 1, &body).unwrap();
        let read = before.accept(index + 1, &encoded).unwrap();
        prop_assert_eq!(read, Some(Entry { position, body }));
        prop_assert_eq!(before.accept(index + 2, &encoded).unwrap(), None, "of another place");
        let other = Position { hash: [0; 32], ..before };
        prop_assert!(hash == [0; 32] || other.accept(index + 1, &encoded).unwrap().is_none(), "behind another");
        let later = Position { epoch: epoch + 1, ..before };
        prop_assert_eq!(later.accept(index + 1, &encoded).unwrap(), None, "of an owner that was fenced");
        let place = at.index(encoded.len());
        encoded[place] ^= flip;
        let damaged = before.accept(index + 1, &encoded);
        prop_assert!(damaged.is_err() || damaged.is_ok_and(|read| read.is_none_or(|read| read.position != position)));
    }
}
