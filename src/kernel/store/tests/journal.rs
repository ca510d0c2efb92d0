//! Journals in memory: what every one must do, and what becomes of entries that get lost.

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

use self::conformance::{conforms, one_of_two_is_taken};
use super::writing::{Seen, commit, outlets, put};
use super::*;
use crate::kernel::store::journal::entry::{Body, Entry, Found, Position};
use crate::kernel::store::journal::seal::Seal;
use crate::kernel::store::journal::shared::{Answer, Log, Numbered, Shared};
use crate::kernel::store::journal::{Journal, Local, POSITION_KEY};
use crate::kernel::store::sweep::Sweeper;
use crate::kernel::store::writer::{CommitQueue, Writer};

#[path = "../../../../tests/cluster/conformance.rs"]
mod conformance;

/// A log that several nodes append to: encoded entries by number.
#[derive(Default)]
pub(super) struct Numbers {
    pub(super) entries: BTreeMap<u64, Vec<u8>>,
    pub(super) last: u64,
    /// Takes an append that expects another number than it gets, as a broken compare-and-set does.
    takes_all: bool,
    /// So many answers get lost.
    lost_answers: usize,
    /// So many appends get lost.
    lost_appends: usize,
    /// Each comes just before an append, from the last one on, unless it is empty.
    pub(super) intruders: Vec<Vec<u8>>,
}

/// One node's way to [`Numbers`].
pub(super) struct Memory {
    log: Arc<Mutex<Numbers>>,
    seal: Arc<Seal>,
    answers: BTreeMap<u64, Answer>,
}

/// A journal in `log`, for a store at `position`.
pub(super) fn memory(log: &Arc<Mutex<Numbers>>, position: Position) -> Shared<Memory> {
    sealed(log, position, &Arc::new(Seal::new(&KEY)))
}

/// What nodes of tests seal with.
pub(super) const KEY: [u8; 32] = [7; 32];

/// A journal in `log`, for a store at `position`, that counts what is not sealed.
pub(super) fn sealed(log: &Arc<Mutex<Numbers>>, position: Position, seal: &Arc<Seal>) -> Shared<Memory> {
    Shared::new(Memory { log: log.clone(), seal: seal.clone(), answers: BTreeMap::new() }, position)
}

impl Log for Memory {
    fn seal(&self) -> &Arc<Seal> {
        &self.seal
    }

    fn send(&mut self, number: u64, encoded: &[u8]) -> Result<(), Error> {
        let mut log = self.log.lock();
        if let Some(intruder) = log.intruders.pop().filter(|it| !it.is_empty()) {
            log.last += 1;
            let got = log.last;
            log.entries.insert(got, intruder);
        }
        if log.lost_appends > 0 {
            log.lost_appends -= 1;
        } else if log.last + 1 == number || log.takes_all {
            log.last += 1;
            let got = log.last;
            log.entries.insert(got, encoded.to_vec());
            if log.lost_answers == 0 {
                self.answers.insert(number, Answer::Stored(got));
            }
            log.lost_answers = log.lost_answers.saturating_sub(1);
        }
        Ok(())
    }

    fn answer(&mut self, number: u64) -> Result<Answer, Error> {
        Ok(self.answers.remove(&number).unwrap_or(Answer::Unknown))
    }

    fn get(&self, number: u64) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.log.lock().entries.get(&number).cloned())
    }

    fn bounds(&self) -> Result<(u64, u64), Error> {
        let log = self.log.lock();
        Ok((log.entries.keys().next().map_or(log.last + 1, |first| *first), log.last))
    }

    fn read(&self, number: u64) -> Result<Numbered<'_>, Error> {
        let entries: Vec<_> = self.log.lock().entries.range(number..).map(|(at, it)| Ok((*at, it.clone()))).collect();
        Ok(Box::new(entries.into_iter()))
    }

    fn trim(&mut self, number: u64) -> Result<(), Error> {
        self.log.lock().entries.retain(|at, _| *at >= number);
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

/// More than so many of [`rows_to_erase`] are erased.
const ERASED: usize = 3_000 + 10 + 1_000;

#[test]
fn the_local_journal_conforms_and_costs_no_row() {
    conforms(&|| Box::new(Local), rows_to_erase(), ERASED, &sweep);
    let (_home, store) = store();
    let writer = Writer::start(store.clone(), outlets().0).unwrap();
    writer.queue().send(Commit { ops: vec![put(b"a1", b"one")], ..Commit::default() });
    writer.stop();
    assert_eq!(store.world.get(POSITION_KEY).unwrap(), None);
}

#[test]
fn a_journal_in_memory_conforms() {
    let log = Arc::default();
    conforms(&|| Box::new(memory(&log, Position::default())), rows_to_erase(), ERASED, &sweep);
}

/// Opens that two nodes try at the same moment, and appends behind them.
const RACES: u8 = 50;

#[test]
fn of_two_nodes_that_append_at_once_one_is_told_that_it_was_taken() {
    for takes_all in [false, true] {
        let log = Arc::new(Mutex::new(Numbers { takes_all, ..Numbers::default() }));
        one_of_two_is_taken(&|| Box::new(memory(&log, Position::default())), RACES, !takes_all);
    }
}

#[test]
fn what_was_fenced_releases_nothing_and_no_reader_sees_it() {
    // Refused at once, or taken by a broken compare-and-set: it makes no difference.
    for takes_all in [false, true] {
        let log = Arc::new(Mutex::new(Numbers { takes_all, ..Numbers::default() }));
        let ((_home_1, first), (_home_2, second), (_home_3, reader)) = (store(), store(), store());
        let start = |store: &Store| {
            let mut journal = memory(&log, store.position().unwrap());
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
        reader.catch_up(&memory(&log, Position::default())).unwrap();
        assert_eq!(all_rows(&reader), all_rows(&second));
        // A third owner goes on behind what is void.
        let (third, note, seen) = start(&second);
        third.queue().send(commit(vec![put(b"a3", b"of the third")], 4, &note));
        third.queue().flush().unwrap();
        assert_eq!(seen.try_recv(), Ok(Seen::Release(4)));
        third.stop();
        reader.catch_up(&memory(&log, Position::default())).unwrap();
        assert_eq!(all_rows(&reader), all_rows(&second));
    }
}

/// A log of an opening and four entries, and what a reader from the start finds there.
pub(super) fn five_entries() -> (Arc<Mutex<Numbers>>, Shared<Memory>, Vec<Entry>) {
    let log = Arc::default();
    let mut journal = memory(&log, Position::default());
    journal.open("node").unwrap();
    for snapshot in ["a", "b", "c", "d"] {
        let position = journal.append(&Body::Rebase { snapshot: snapshot.into() }).unwrap().unwrap();
        journal.acknowledged(&position).unwrap();
    }
    let entries: Vec<Entry> = journal.read(&Position::default()).unwrap().map(Result::unwrap).collect();
    assert_eq!(entries.len(), 5);
    (log, journal, entries)
}

/// What a reader behind `position` comes to: the entries, or what is wrong.
pub(super) fn found(journal: &dyn Journal, position: &Position) -> Result<usize, Error> {
    journal.read(position)?.try_fold(0, |count, entry| entry.map(|_| count + 1))
}

#[test]
fn a_reader_notices_that_what_was_acknowledged_is_gone() {
    // From the middle: everything behind it would be void for every reader, and nobody would say so.
    let (log, journal, entries) = five_entries();
    log.lock().entries.remove(&3).unwrap();
    assert!(matches!(found(&journal, &Position::default()), Err(Error::Lost { index: 3 })));
    assert!(matches!(found(&journal, &entries[1].position), Err(Error::Lost { index: 3 })));
    assert_eq!(found(&journal, &entries[3].position).unwrap(), 1, "who has it already goes on");

    // From the end: the store has more than the journal, and a new owner would go on without it.
    let (log, journal, entries) = five_entries();
    let end = log.lock().entries.split_off(&4);
    log.lock().last = 3;
    assert!(matches!(found(&journal, &entries[4].position), Err(Error::Lost { index: 4 })));
    assert_eq!(found(&journal, &entries[1].position).unwrap(), 1, "who never had it cannot know");
    let mut behind = memory(&log, entries[2].position);
    behind.open("a node that never had it").unwrap();
    behind.append(&Body::Close).unwrap();
    assert_eq!(end.len(), 2);
    assert!(matches!(found(&journal, &entries[4].position), Err(Error::Diverged { index: 5 })));
    assert!(matches!(memory(&log, entries[4].position).open("the one that has it"), Err(Error::Diverged { index: 5 })));
}

#[test]
fn a_journal_that_was_trimmed_is_read_from_what_it_still_has() {
    let (_log, mut journal, entries) = five_entries();
    journal.trim(3).unwrap();
    assert!(matches!(found(&journal, &Position::default()), Err(Error::Trimmed { first: 3 })));
    assert!(matches!(found(&journal, &entries[0].position), Err(Error::Trimmed { first: 3 })));
    assert_eq!(found(&journal, &entries[1].position).unwrap(), 3);
    assert_eq!(found(&journal, &entries[2].position).unwrap(), 2, "the entry itself is there to be held against");
    journal.trim(6).unwrap();
    assert_eq!(found(&journal, &entries[4].position).unwrap(), 0);
    assert!(found(&journal, &entries[3].position).is_err());
}

#[test]
fn an_owner_finds_out_what_became_of_an_append_without_an_answer() {
    let (log, mut journal, entries) = five_entries();
    let next = |journal: &mut Shared<Memory>| journal.append(&Body::Close).unwrap().unwrap();
    log.lock().lost_answers = 2;
    let stored = [next(&mut journal), next(&mut journal)];
    journal.acknowledged(&stored[1]).unwrap();
    assert_eq!(log.lock().last, 7, "they were read back, and not appended again");
    // Both were lost on the way, the second one as it stood behind the first.
    log.lock().lost_appends = 2;
    let lost = [next(&mut journal), next(&mut journal)];
    journal.acknowledged(&lost[1]).unwrap();
    assert_eq!(found(&journal, &stored[1]).unwrap(), 2, "they were appended again, in order");
    // Another one owns the world by now, and the answer to his own opening was lost.
    let mut other = memory(&log, entries[0].position);
    log.lock().lost_answers = 1;
    other.open("other").unwrap();
    let late = next(&mut journal);
    assert!(matches!(journal.acknowledged(&late), Err(Error::Fenced { .. })));
    assert_eq!(found(&journal, &lost[1]).unwrap(), 1);
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
    fn an_entry_is_read_as_it_was_written_and_with_any_other_byte_it_is_none(
        body in body(),
        (world, epoch, index) in (any::<u16>(), 0..u64::MAX - 1, 0..u64::MAX - 1),
        hash in any::<[u8; 32]>(),
        (at, flip) in (any::<prop::sample::Index>(), 1_u8..),
    ) {
        let (before, seal) = (Position { world, epoch, index, hash }, Seal::new(&KEY));
        prop_assert_eq!(Position::from_bytes(&before.to_bytes()), Some(before));
        let (position, mut encoded) = before.encode(index + 1, &body, &seal).unwrap();
        let read = before.accept(index + 1, &encoded, &seal).unwrap();
        prop_assert_eq!(read, Found::Valid(Entry { position, body }));
        prop_assert_eq!(before.accept(index + 2, &encoded, &seal).unwrap(), Found::Void, "of another place");
        let other = Position { hash: [0; 32], ..before };
        prop_assert!(hash == [0; 32] || other.accept(index + 1, &encoded, &seal).unwrap() == Found::Unlinked);
        let later = Position { epoch: epoch + 1, ..before };
        prop_assert_eq!(later.accept(index + 1, &encoded, &seal).unwrap(), Found::Void, "of an owner that was fenced");
        let stranger = before.accept(index + 1, &encoded, &Seal::new(&[8; 32])).unwrap();
        prop_assert_eq!(stranger, Found::Foreign, "of those who have another key");
        let place = at.index(encoded.len());
        encoded[place] ^= flip;
        prop_assert_eq!(before.accept(index + 1, &encoded, &seal).unwrap(), Found::Foreign, "before it is looked into");
    }
}
