//! Messages in the log of a journal that come from others than those who share it.

use std::borrow::Cow;
use std::sync::Arc;

use parking_lot::Mutex;

use super::following::large;
use super::journal::{KEY, Memory, Numbers, five_entries, found, sealed};
use super::writing::{Seen, commit, outlets, put};
use super::*;
use crate::kernel::store::journal::Journal;
use crate::kernel::store::journal::entry::{Body, Position};
use crate::kernel::store::journal::seal::Seal;
use crate::kernel::store::journal::shared::Shared;
use crate::kernel::store::writer::Writer;

fn step(value: &[u8]) -> Body<'static> {
    Body::Step { step: None, ops: Cow::Owned(vec![put(b"a1", value)]), erased: Cow::Borrowed(&[]) }
}

/// Somebody else adds a message.
fn add(log: &Mutex<Numbers>, message: &[u8]) {
    let mut log = log.lock();
    log.last += 1;
    let number = log.last;
    log.entries.insert(number, message.to_vec());
}

fn append(journal: &mut Shared<Memory>, body: &Body<'_>) -> Position {
    let position = journal.append(body).unwrap().unwrap();
    journal.acknowledged(&position).unwrap()
}

fn values(journal: &dyn Journal) -> Vec<Body<'static>> {
    journal.read(&Position::default()).unwrap().map(|entry| entry.unwrap().body).collect()
}

#[test]
fn what_others_write_is_passed_over_and_counted_and_nothing_of_the_owner_is_lost_or_there_twice() {
    let (log, seal) = (Arc::default(), Arc::new(Seal::new(&KEY)));
    add(&log, b"hello");
    let mut owner = sealed(&log, Position::default(), &seal);
    owner.open("owner").unwrap();
    // An entry of somebody with another key, and one of the owner's own again.
    let stranger = Seal::new(&[8; 32]);
    let (_, forged) = owner.newest().encode(3, &Body::Open { node: "other".into() }, &stranger).unwrap();
    let own = log.lock().entries[&2].clone();
    for (number, message) in [b"".to_vec(), b"hello".to_vec(), vec![0; 600], forged, own].into_iter().enumerate() {
        add(&log, &message);
        let position = append(&mut owner, &step(&[number as u8]));
        assert_eq!(position.index, 4 + 2 * number as u64);
        assert_eq!(owner.newest(), &position);
    }
    let expected: Vec<_> = (0..5).map(|number| step(&[number])).collect();
    assert_eq!(values(&owner)[1..], expected);
    assert_eq!(seal.passed_over(), 5, "what was the owner's own is void, and not of others");
    assert_eq!(values(&owner).len(), 6);
    assert_eq!(seal.passed_over(), 5, "each is counted once");
    // Another node takes over behind more of them.
    add(&log, b"hello");
    let mut next = sealed(&log, Position::default(), &seal);
    next.open("next").unwrap();
    append(&mut next, &step(b"of the next"));
    assert_eq!(values(&next).len(), 8);
    let late = owner.append(&step(b"late")).unwrap().unwrap();
    assert!(matches!(owner.acknowledged(&late), Err(Error::Fenced { .. })));
}

#[test]
fn an_owner_that_finds_others_messages_in_its_place_stores_where_its_entry_came_to_stand() {
    let (log, seal) = (Arc::default(), Arc::new(Seal::new(&KEY)));
    let (_home, store) = store();
    let mut journal = sealed(&log, Position::default(), &seal);
    journal.open("owner").unwrap();
    store.catch_up(&journal).unwrap();
    let (outlets, note, seen) = outlets();
    let writer = Writer::start_with(store.clone(), outlets, None, Box::new(journal)).unwrap();
    for number in 1..=3 {
        add(&log, b"hello");
        writer.queue().send(commit(vec![put(b"a1", &[number])], number.into(), &note));
        writer.queue().flush().unwrap();
    }
    writer.stop();
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), (1..=3).map(Seen::Release).collect::<Vec<_>>());
    let journal = sealed(&log, Position::default(), &seal);
    assert_eq!(store.position().unwrap().index, log.lock().last);
    assert_eq!(found(&journal, &store.position().unwrap()).unwrap(), 0, "the store has what the journal has");
}

#[test]
fn messages_of_others_between_the_pieces_of_an_entry_change_nothing() {
    let (log, seal): (Arc<Mutex<Numbers>>, _) = (Arc::default(), Arc::new(Seal::new(&KEY)));
    let mut journal = sealed(&log, Position::default(), &seal);
    journal.open("owner").unwrap();
    log.lock().intruders = [&b""[..], b"hello"].repeat(4).into_iter().map(<[u8]>::to_vec).collect();
    let body = large((3 << 19) + 5);
    append(&mut journal, &body);
    append(&mut journal, &Body::Close);
    assert_eq!(values(&journal)[1..], [body, Body::Close]);
    assert_eq!((seal.passed_over(), log.lock().last), (4, 10));
}

#[test]
fn an_entry_that_was_damaged_is_lost_and_not_a_message_of_others() {
    let (log, journal, entries) = five_entries();
    log.lock().entries.get_mut(&3).unwrap()[40] ^= 1;
    assert!(matches!(found(&journal, &Position::default()), Err(Error::Lost { index: 3 })));
    assert_eq!(found(&journal, &entries[3].position).unwrap(), 1, "who has it already goes on");
    assert!(matches!(found(&journal, &entries[1].position), Err(Error::Lost { index: 3 })));
}

#[test]
fn epochs_advance_by_one() {
    let (log, journal, entries) = five_entries();
    let seal = Seal::new(&KEY);
    let newest = entries[4].position;
    for epoch in [0, newest.epoch + 1, u64::MAX - 1] {
        let behind = Position { epoch, ..newest };
        let (_, open) = behind.encode(6, &Body::Open { node: "n".into() }, &seal).unwrap();
        log.lock().entries.insert(6, open);
        log.lock().last = 6;
        assert_eq!(found(&journal, &newest).unwrap(), 0, "{epoch}");
    }
    assert!(Position { epoch: u64::MAX, ..newest }.encode(6, &Body::Open { node: "n".into() }, &seal).is_err());
}
