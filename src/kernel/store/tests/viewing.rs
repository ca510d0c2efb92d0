//! Views, and stores made of rows.

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::record::Space;
use agentsvc_systems::kernel::record;

use super::*;
use crate::kernel::store::journal::Local;
use crate::kernel::store::load::from_rows;
use crate::kernel::store::rows::{Row, RowError, RowReader, RowWriter};

fn put(store: &Store, rows: &[(Space, &str, &str)]) {
    let mut batch = store.database.batch().durability(Some(PersistMode::SyncData));
    for (space, key, value) in rows {
        let keyspace = if *space == Space::World { &store.world } else { &store.content };
        batch.insert(keyspace, *key, *value);
    }
    batch.commit().unwrap();
}

fn all(store: &Store) -> Vec<Row> {
    store.view().all().collect::<Result<_, _>>().unwrap()
}

fn ok(rows: Vec<Row>) -> impl Iterator<Item = Result<Row, RowError>> {
    rows.into_iter().map(Ok)
}

#[test]
fn a_view_stands_still_while_the_writer_goes_on() {
    let (_home, store) = store();
    put(&store, &[(Space::World, "a1", "one"), (Space::World, "a2", "two"), (Space::Content, "r1", "text")]);
    let view = store.view();
    put(&store, &[(Space::World, "a1", "changed"), (Space::World, "a3", "new"), (Space::Content, "r2", "more")]);
    store.content.remove("r1").unwrap();
    // Out of memory and through a compaction as well.
    store.world.rotate_memtable_and_wait().unwrap();
    store.content.rotate_memtable_and_wait().unwrap();
    store.world.major_compact().unwrap();
    let rows: Vec<_> = view.all().collect::<Result<_, _>>().unwrap();
    let keys: Vec<_> = rows.iter().map(|row| (row.space, row.key.as_slice(), row.value.as_slice())).collect();
    let expected: [(_, &[u8], &[u8]); 3] =
        [(Space::World, b"a1", b"one"), (Space::World, b"a2", b"two"), (Space::Content, b"r1", b"text")];
    assert_eq!(keys, expected, "the format is not among them");
    assert_eq!(view.get(Space::World, b"a1").unwrap().unwrap(), b"one");
    assert_eq!(view.get(Space::World, b"a3").unwrap(), None);
    assert_eq!(view.get(Space::World, &FORMAT_KEY).unwrap().unwrap(), FORMAT.to_be_bytes());
    assert_eq!(view.prefix(Space::World, b"a2").count(), 1);
    assert_eq!(store.view().rows(Space::World).count(), 3);
}

#[test]
fn a_store_made_of_rows_holds_the_same_rows() {
    let (home, store) = store();
    for number in 0..3_000_u32 {
        let key = format!("a{number:05}");
        put(&store, &[(Space::World, &key, &"x".repeat(number as usize % 200)), (Space::Content, &key, "text")]);
    }
    let mut writer = RowWriter::new(Vec::new()).unwrap();
    for row in store.view().all() {
        let Row { space, key, value } = row.unwrap();
        writer.push(space, &key, &value).unwrap();
    }
    let (file, written) = writer.finish().unwrap();
    let copy = home.path().join("copy");
    let totals = Store::build(&copy, RowReader::new(file.as_slice()).unwrap()).unwrap();
    assert_eq!(totals, written);
    assert_eq!((totals.world, totals.content), (3_000, 3_000));
    let copied = Store::open(&copy).unwrap();
    assert_eq!(all(&copied), all(&store));
    // It is an ordinary store: it takes writes, and keeps them over a restart.
    put(&copied, &[(Space::World, "a00001", "changed"), (Space::World, "b", "new")]);
    drop(copied);
    let copied = Store::open(&copy).unwrap();
    assert_eq!(copied.view().get(Space::World, b"a00001").unwrap().unwrap(), b"changed");
    assert_eq!(copied.view().rows(Space::World).count(), 3_001);
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 2, "nothing is left beside them");
}

#[test]
fn no_rows_make_an_empty_store() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("world");
    Store::build(&path, ok(vec![])).unwrap();
    assert_eq!(all(&Store::open(&path).unwrap()), []);
}

#[test]
fn rows_that_cannot_be_used_leave_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("world");
    let row = |space, key: &[u8]| Row { space, key: key.to_vec(), value: vec![1] };
    let cases = [
        vec![row(Space::World, b"b"), row(Space::World, b"a")],
        vec![row(Space::Content, b"b"), row(Space::World, b"a")],
        vec![row(Space::World, b"a"), row(Space::World, b"a")],
        vec![row(Space::World, &[0]), row(Space::World, b"a")],
        vec![row(Space::World, b"")],
    ];
    for rows in cases {
        let error = Store::build(&path, ok(rows)).unwrap_err();
        assert!(matches!(error, Error::Rows { .. }), "{error}");
    }
    let broken = vec![Ok(row(Space::World, b"a")), Err(RowError::Truncated { row: 2 })];
    let error = Store::build(&path, broken).unwrap_err();
    assert!(error.to_string().contains("truncated in row 2"), "{error}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_store_is_not_built_over_another() {
    let (home, store) = store();
    put(&store, &[(Space::World, "a1", "one")]);
    let error = Store::build(&home.path().join("world"), ok(vec![])).unwrap_err();
    assert!(matches!(error, Error::Corrupted { .. }), "{error}");
    assert_eq!(all(&store).len(), 1);
}

#[test]
fn records_that_cannot_be_read_are_named() {
    let rows: Vec<Result<_, RowError>> = vec![Ok((b"a-agent-without-an-id".to_vec(), vec![1]))];
    assert!(matches!(from_rows(rows), Err(RowError::Record(record::Error::Key(_) | record::Error::Corrupt { .. }))));
    let records = from_rows::<RowError>([]).unwrap();
    assert_eq!(records.iter::<agentsvc_components::agent::record::AgentRecord>().count(), 0);
}

#[test]
fn the_trail_and_the_store_s_own_rows_are_carried_over_and_nothing_else() {
    let (home, old) = store();
    put(&old, &[(Space::World, "z", "head 3"), (Space::World, "a1", "old"), (Space::World, "\0s", "step 9")]);
    put(&old, &[(Space::Content, "z2", "two"), (Space::Content, "z3", "three"), (Space::Content, "y", "old")]);
    let path = home.path().join("next");
    let row = |space, key: &[u8], value: &[u8]| Row { space, key: key.to_vec(), value: value.to_vec() };
    let rows = vec![
        row(Space::World, b"a1", b"new"),
        row(Space::World, b"z", b"head 2"),
        row(Space::Content, b"r", b"new"),
        row(Space::Content, b"z1", b"one"),
        row(Space::Content, b"z2", b"another two"),
        row(Space::Content, b"z9", b"of another home"),
    ];
    Store::build(&path, ok(rows)).unwrap();
    let next = Store::open(&path).unwrap();
    assert_eq!(next.carry_over(&old).unwrap(), 6);
    assert_eq!(next.carry_over(&old).unwrap(), 0, "it is done");
    drop(next);
    let next = Store::open(&path).unwrap();
    let expected = [
        row(Space::World, b"a1", b"new"),
        row(Space::World, b"z", b"head 3"),
        row(Space::Content, b"r", b"new"),
        row(Space::Content, b"z2", b"two"),
        row(Space::Content, b"z3", b"three"),
    ];
    assert_eq!(all(&next), expected);
    assert_eq!(next.view().get(Space::World, b"\0s").unwrap().unwrap(), b"step 9");
    put(&old, &[(Space::Content, "z4", "four")]);
    assert_eq!(next.carry_over(&old).unwrap(), 1);
}

#[test]
fn a_store_is_closed_when_the_last_view_of_it_is_gone() {
    let (_home, store) = store();
    let watch = store.watch();
    let view = store.view();
    drop(store);
    assert!(!watch.is_closed_within(std::time::Duration::from_millis(5)));
    assert!(watch.store().is_some());
    drop(view);
    assert!(watch.is_closed_within(std::time::Duration::from_secs(60)));
    assert!(watch.store().is_none());
}

#[test]
fn ids_have_a_slot_since_the_first_start_or_what_was_restored() {
    let (home, first) = store();
    assert_eq!(first.view().born().unwrap(), None, "no release that knows of slots has started it");
    assert_eq!(first.born(Timestamp(1_000), &mut Local).unwrap(), Timestamp(1_001));
    assert_eq!(first.born(Timestamp(2_000), &mut Local).unwrap(), Timestamp(1_001), "the first start decides");
    drop(first);
    let first = Store::open(home.path().join("world")).unwrap();
    assert_eq!(first.view().born().unwrap(), Some(Timestamp(1_001)));
    for (others, expected) in [(None, 1_001), (Some(500), 1_001), (Some(5_000), 5_000)] {
        let (_home, restored) = store();
        others.into_iter().for_each(|born| restored.set_born(Timestamp(born)).unwrap());
        restored.carry_over(&first).unwrap();
        assert_eq!(restored.view().born().unwrap(), Some(Timestamp(expected)));
    }
    let (_home, older) = store();
    let (_home, restored) = store();
    restored.set_born(Timestamp(500)).unwrap();
    restored.carry_over(&older).unwrap();
    assert_eq!(restored.view().born().unwrap(), None, "the next start decides: no id that is there has one");
}
