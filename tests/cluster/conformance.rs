//! What every journal must do, whatever keeps its entries: those in memory (`src/kernel/store/tests/journal.rs`) and the one of NATS
//! servers are asked the same.

use std::borrow::Cow;
use std::sync::Arc;

use agentsvc::kernel::store::journal::Journal;
use agentsvc::kernel::store::journal::entry::{Body, Position};
use agentsvc::kernel::store::writer::{CommitQueue, Outlets, Writer};
use agentsvc::kernel::store::{Error, Store};
use agentsvc_components::Timestamp;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::kernel::step::StepMark;
use agentsvc_systems::kernel::engine::Commit;
use tempfile::TempDir;

/// Commits behind the first one.
const COMMITS: u8 = 200;

/// Where a row is, its key and its value.
type Row = (Space, Vec<u8>, Vec<u8>);

fn store() -> (TempDir, Store) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(home.path().join("world")).expect("a store can be made");
    (home, store)
}

/// All rows of the world in it, and its newest step.
fn all_rows(store: &Store) -> (Vec<Row>, StepMark) {
    let view = store.view();
    let rows = view.all().map(|row| row.map(|row| (row.space, row.key, row.value)));
    (rows.collect::<Result<_, Error>>().expect("its rows can be read"), view.step().expect("its step can be read"))
}

fn put(key: &[u8], value: &[u8]) -> Op {
    Op { space: Space::World, key: key.to_vec(), value: Some(value.to_vec()) }
}

/// What every journal must do for the writer: what is let go is in the store, and stays there; where the journal keeps entries,
/// they give the same rows in an empty store, erasures included. `new` gives a journal of one world that nobody has opened before;
/// `erase` erases more than `least` of the rows in `first`.
pub(crate) fn conforms(
    new: &dyn Fn() -> Box<dyn Journal>,
    first: Vec<Op>,
    least: usize,
    erase: &dyn Fn(&Store, CommitQueue),
) {
    let (home, store) = store();
    let mut journal = new();
    journal.open("first").expect("nobody else opens it");
    let is_kept = journal.read(&Position::default()).expect("it can be read").count() > 0;
    assert_eq!(store.catch_up(&*journal).expect("it can be read"), u64::from(is_kept));
    let (released, seen) = crossbeam_channel::unbounded();
    let outlets = Outlets {
        effects: Arc::new(|_| ()),
        told: Arc::new(|_| ()),
        reopen: Arc::new(drop),
        fenced: Arc::new(|_| ()),
        fatal: Arc::new(drop),
    };
    let writer = Writer::start_with(store.clone(), outlets, None, journal).expect("a thread can be started");
    let queue = writer.queue();
    let step = |number| StepMark { number, at: Timestamp(5) };
    let commit = |ops, number: u64| {
        let released = released.clone();
        let release = move || released.send(number).expect("it is read below");
        Commit { ops, step: step(number), releases: vec![Box::new(release)], ..Commit::default() }
    };
    queue.send(commit(first, 1));
    for number in 1..=COMMITS {
        let gone = Op { space: Space::World, key: vec![b'a', (number + 3) % 7], value: None };
        queue.send(commit(vec![put(&[b'a', number % 7], &[b'v', number]), gone], 1 + u64::from(number)));
    }
    queue.flush().expect("the writer goes on");
    assert!(seen.try_iter().eq(1..=1 + u64::from(COMMITS)), "what was sent is let go in order");
    let before = all_rows(&store).0.len();
    erase(&store, writer.queue());
    queue.send(commit(vec![put(b"b", b"the last")], 300));
    writer.stop();
    let rows = all_rows(&store);
    assert!(before - rows.0.len() > least, "they were erased");
    let position = store.position().expect("its position can be read");
    drop((store, queue));
    let store = Store::open(home.path().join("world")).expect("it can be opened");
    assert_eq!(all_rows(&store), rows);
    assert_eq!(rows.1, step(300));

    let journal = new();
    assert_eq!(store.catch_up(&*journal).expect("it can be read"), 0, "the store was never behind what was let go");
    let (_other_home, other) = self::store();
    let applied = other.catch_up(&*journal).expect("it can be read");
    assert_eq!(applied, position.index, "an entry for each batch and the taking over");
    assert_eq!(applied > 0, is_kept);
    if is_kept {
        assert_eq!(all_rows(&other), rows, "byte for byte");
        assert_eq!(other.position().expect("its position can be read"), position);
        assert_eq!(other.catch_up(&*journal).expect("it can be read"), 0);
    }
}

/// Does `work` with both at the same moment.
fn both<A: Send, B: Send>(of: [A; 2], work: impl Fn(u8, A) -> B + Sync) -> [B; 2] {
    let work = &work;
    std::thread::scope(|scope| {
        let mut node = 0;
        let threads = of.map(|it| {
            node += 1;
            scope.spawn(move || work(node, it))
        });
        threads.map(|thread| thread.join().expect("a node does not panic"))
    })
}

/// Of two nodes that open a journal and append to it at the same moment, at most one is told that its entry is durable; where the
/// log compares rightly, one is.
pub(crate) fn one_of_two_is_taken(new: &(dyn Fn() -> Box<dyn Journal> + Sync), races: u8, compares: bool) {
    for race in 0..races {
        let opened = both([new(), new()], |node, mut journal| journal.open(&node.to_string()).map(|()| journal));
        assert!(opened.iter().any(Result::is_ok), "somebody opens it");
        let taken = both(opened, |node, journal| {
            let body =
                Body::Step { step: None, ops: vec![put(b"a", &[node, race])].into(), erased: Cow::Borrowed(&[]) };
            journal.is_ok_and(|mut journal| {
                let appended = journal.append(&body);
                appended.is_ok_and(|position| position.is_some_and(|it| journal.acknowledged(&it).is_ok()))
            })
        });
        let count = taken.iter().filter(|taken| **taken).count();
        assert!(count <= 1 && (count == 1 || !compares), "{taken:?}");
    }
    let journal = new();
    let entries = journal.read(&Position::default()).expect("it can be read");
    let steps = entries.filter(|entry| {
        let entry = entry.as_ref().expect("every entry can be read");
        matches!(entry.body, Body::Step { .. })
    });
    let steps = steps.count();
    assert!(steps == usize::from(races) || !compares, "{steps}");
}
