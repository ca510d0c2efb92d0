//! What a standby does beyond applying entries one by one.

use std::borrow::Cow;
use std::sync::Arc;

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::kernel::step::StepMark;
use agentsvc_systems::kernel::engine::Commit;
use parking_lot::Mutex;

use super::journal::{KEY, Numbers, memory};
use super::writing::{outlets, put};
use super::*;
use crate::kernel::store::journal::entry::{Body, Entry, Position};
use crate::kernel::store::journal::seal::Seal;
use crate::kernel::store::journal::{Journal, MARK_KEY, Origin};
use crate::kernel::store::writer::Writer;

/// A step with a record of so many bytes that do not compress.
pub(super) fn large(bytes: usize) -> Body<'static> {
    let mut random = 1_u64;
    let value = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random.to_be_bytes()[0]
    });
    let op = Op { space: Space::Content, key: b"k".to_vec(), value: Some(value.take(bytes).collect()) };
    Body::Step { step: None, ops: Cow::Owned(vec![op]), erased: Cow::Owned(Vec::new()) }
}

#[test]
fn what_is_too_large_for_one_entry_travels_in_pieces_and_counts_with_the_last() {
    let log: Arc<Mutex<Numbers>> = Arc::default();
    let mut journal = memory(&log, Position::default());
    journal.open("node").unwrap();
    let opened = *journal.newest();
    let body = large((3 << 19) + 5);
    let position = journal.append(&body).unwrap().unwrap();
    let closed = journal.append(&Body::Close).unwrap().unwrap();
    journal.acknowledged(&closed).unwrap();
    assert_eq!((position.index, closed.index), (opened.index + 4, opened.index + 5));
    assert!(log.lock().entries.values().all(|entry| entry.len() < (512 << 10) + 512));
    let read = |from: &Position| journal.read(from).unwrap().collect::<Result<Vec<_>, _>>();
    let last = Entry { position: closed, body: Body::Close };
    assert_eq!(read(&opened).unwrap(), [Entry { position, body }, last.clone()]);
    assert_eq!(read(&position).unwrap(), [last]);

    // A piece that is gone is noticed, and so is one that is another's.
    let whole = log.lock().entries.clone();
    log.lock().entries.remove(&(opened.index + 2));
    assert!(matches!(read(&opened), Err(Error::Lost { .. })));
    let (_, other) =
        opened.encode(opened.index + 2, &Body::Part { bytes: Cow::Borrowed(b"other") }, &Seal::new(&KEY)).unwrap();
    log.lock().entries.insert(opened.index + 2, other);
    assert!(matches!(read(&opened), Err(Error::Lost { .. })));

    // Its owner died between two pieces: there is no such entry, and another node goes on.
    for pieces in 1..=3 {
        let log: Arc<Mutex<Numbers>> = Arc::default();
        let last = opened.index + pieces;
        {
            let mut numbers = log.lock();
            (numbers.entries, numbers.last) = (whole.clone(), last);
            numbers.entries.retain(|number, _| *number <= last);
        }
        let mut next = memory(&log, opened);
        next.open("other").unwrap();
        let entries: Vec<_> = next.read(&opened).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(entries, [Entry { position: *next.newest(), body: Body::Open { node: "other".into() } }]);
        assert_eq!(entries[0].position.index, last + 1);
    }
}

#[test]
fn a_store_goes_on_from_a_snapshot_only_if_it_is_made_of_it() {
    let log: Arc<Mutex<Numbers>> = Arc::default();
    let mut journal = memory(&log, Position::default());
    journal.open("node").unwrap();
    let rebase = journal.append(&Body::Rebase { snapshot: "s".into() }).unwrap().unwrap();
    journal.acknowledged(&rebase).unwrap();
    let ((_home, other), (_home_2, made)) = (store(), store());
    assert!(matches!(other.catch_up(&journal), Err(Error::Rebased { snapshot }) if snapshot == "s"));
    assert_eq!(other.position().unwrap().index, rebase.index - 1, "what stands before it is applied");
    let origin = Origin {
        snapshot: "s".to_owned(),
        position: Position::default(),
        step: StepMark { number: 7, at: Timestamp(1) },
        born: Some(Timestamp(9)),
    };
    made.set_origin(&origin).unwrap();
    assert_eq!(made.catch_up(&journal).unwrap(), 2);
    assert_eq!(
        made.view().origin("t".to_owned()).unwrap(),
        Origin { snapshot: "t".to_owned(), position: rebase, ..origin }
    );
    made.forget_position().unwrap();
    assert_eq!(made.position().unwrap(), Position::default(), "it is alone");
}

#[test]
fn stores_show_their_rows_where_an_entry_says_so() {
    let log: Arc<Mutex<Numbers>> = Arc::default();
    let ((_home, owner), (_home_2, follower)) = (store(), store());
    let mut journal = memory(&log, Position::default());
    journal.open("node").unwrap();
    owner.catch_up(&journal).unwrap();
    let (marked, marks) = crossbeam_channel::unbounded();
    [&owner, &follower].into_iter().for_each(|store| store.watch_marks(marked.clone()));
    let writer = Writer::start_with(owner.clone(), outlets().0, None, Box::new(journal)).unwrap();
    let commit = |ops| Commit { ops, ..Commit::default() };
    for ops in [vec![put(b"a1", b"one")], vec![put(&MARK_KEY, b"here")], vec![put(b"a2", b"two")]] {
        writer.queue().send(commit(ops));
        writer.queue().flush().unwrap();
    }
    writer.stop();
    follower.catch_up(&memory(&log, Position::default())).unwrap();
    let shown: Vec<_> =
        marks.try_iter().map(|it| (it.mark, it.view.all().map(Result::unwrap).collect::<Vec<_>>())).collect();
    assert_eq!(shown.len(), 2);
    assert_eq!(shown[0], shown[1]);
    assert_eq!((shown[0].0.as_slice(), shown[0].1.len()), (&b"here"[..], 1), "of the rows only what stood before it");
}
