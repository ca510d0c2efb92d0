//! The store on a real disk: what a kill leaves, what is let go and when.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::Ordering;

use fjall::PersistMode;

use super::*;

mod following;
mod foreign;
mod journal;
mod reading;
mod viewing;
mod writing;

/// An empty store in a directory of its own.
fn store() -> (tempfile::TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path().join("world")).unwrap();
    (home, store)
}

/// All keys and values of the world keyspace but the format.
fn world_rows(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let rows = store.world.range([1_u8].as_slice()..);
    rows.map(|row| row.into_inner().map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

/// The newest journal file and the length of what is written in it: it is allocated ahead and filled with zeros.
fn journal(home: &Path) -> (std::path::PathBuf, u64) {
    let mut journals: Vec<_> = std::fs::read_dir(home.join("world"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jnl"))
        .collect();
    journals.sort();
    let newest = journals.pop().unwrap();
    let bytes = std::fs::read(&newest).unwrap();
    let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    (newest, written as u64)
}

#[test]
fn an_empty_store_opens_again_and_keeps_its_format() {
    let (home, store) = store();
    assert_eq!(world_rows(&store), []);
    assert!(store.database.disk_space().unwrap() > 0);
    drop(store);
    let store = Store::open(home.path().join("world")).unwrap();
    assert_eq!(store.path(), home.path().join("world"));
}

#[test]
fn a_store_in_use_is_not_opened_twice() {
    let (home, _store) = store();
    let error = Store::open(home.path().join("world")).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error}");
    assert!(error.to_string().contains("in use"));
}

#[test]
fn a_store_of_a_newer_release_is_refused() {
    let (home, store) = store();
    store.world.insert(FORMAT_KEY, (FORMAT + 1).to_be_bytes()).unwrap();
    drop(store);
    let error = Store::open(home.path().join("world")).unwrap_err();
    assert!(matches!(error, Error::Newer { found, supported: FORMAT, .. } if found == FORMAT + 1), "{error}");
}

#[test]
fn records_without_a_format_are_damage() {
    let (home, store) = store();
    store.world.insert("a1", "x").unwrap();
    store.world.remove(FORMAT_KEY).unwrap();
    drop(store);
    let error = Store::open(home.path().join("world")).unwrap_err();
    assert!(matches!(error, Error::Corrupted { .. }), "{error}");
}

#[test]
fn a_fifo_in_a_store_is_told_and_does_not_keep_the_start_waiting() {
    let home = tempfile::tempdir().unwrap();
    let (path, aside) = (home.path().join("world"), home.path().join("aside"));
    drop(Store::open(&path).unwrap());
    for name in ["version", "lock", "keyspaces/0/current", "keyspaces/1/current", "keyspaces/0/tables/0"] {
        std::fs::rename(path.join(name), &aside).unwrap();
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            path.join(name),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        );
        made.unwrap();
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("{name} is not a regular file")), "{error}");
        std::fs::remove_file(path.join(name)).unwrap();
        std::fs::rename(&aside, path.join(name)).unwrap();
    }
    drop(Store::open(&path).unwrap());
}

#[test]
fn a_file_of_a_store_that_is_far_too_large_is_told_and_not_read() {
    let home = tempfile::tempdir().unwrap();
    let (path, aside) = (home.path().join("world"), home.path().join("aside"));
    let store = Store::open(&path).unwrap();
    store.world.insert("a1", "x").unwrap();
    drop(store);
    let lists = std::fs::read_dir(path.join("keyspaces/1")).unwrap().map(|entry| entry.unwrap().file_name());
    let list = lists.map(|name| name.into_string().unwrap()).find(|name| name.starts_with('v')).unwrap();
    let list = format!("keyspaces/1/{list}");
    for name in ["version", "keyspaces/0/current", "keyspaces/1/current", "keyspaces/0/tables/0", &list] {
        std::fs::rename(path.join(name), &aside).unwrap();
        std::fs::File::create(path.join(name)).unwrap().set_len(20 << 30).unwrap();
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("{name} is larger than ")), "{error}");
        let salvage = super::raw::Salvage::read(&path).unwrap();
        assert!(salvage.damage.iter().any(|text| text.starts_with(&format!("{name} is larger"))), "{name}");
        std::fs::remove_file(path.join(name)).unwrap();
        std::fs::rename(&aside, path.join(name)).unwrap();
    }
    drop(Store::open(&path).unwrap());
}

#[test]
fn links_and_foreign_directories_in_a_store_are_told() {
    let home = tempfile::tempdir().unwrap();
    let (path, aside) = (home.path().join("world"), home.path().join("aside"));
    drop(Store::open(&path).unwrap());
    let journal = std::fs::read_dir(&path).unwrap().find_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.ends_with(".jnl").then_some(name)
    });
    for name in ["keyspaces/0", "keyspaces/1", "keyspaces", &journal.unwrap()] {
        std::fs::rename(path.join(name), &aside).unwrap();
        std::os::unix::fs::symlink(&aside, path.join(name)).unwrap();
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("{name} is a symbolic link")), "{error}");
        std::fs::remove_file(path.join(name)).unwrap();
        std::fs::rename(&aside, path.join(name)).unwrap();
    }
    std::fs::create_dir(path.join("keyspaces/old")).unwrap();
    let error = Store::open(&path).unwrap_err().to_string();
    assert!(error.contains("keyspaces/old is not part of a store"), "{error}");
    std::fs::remove_dir(path.join("keyspaces/old")).unwrap();
    std::os::unix::fs::symlink(&path, &aside).unwrap();
    drop(Store::open(&aside).unwrap());
}

#[test]
fn a_first_start_that_was_killed_is_no_obstacle() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("world");
    // What a kill in the middle of a creation leaves: some files, but not yet the marker.
    let unfinished = home.path().join("world.new-1");
    std::fs::create_dir_all(unfinished.join("keyspaces")).unwrap();
    std::fs::write(unfinished.join("0.jnl"), [0; 64]).unwrap();
    std::fs::create_dir(&path).unwrap();
    drop(Store::open(&path).unwrap());
    assert!(!unfinished.exists(), "leftovers are cleared away");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("world");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("diary.txt"), "mine").unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, Error::Corrupted { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(path.join("diary.txt")).unwrap(), "mine");
}

#[test]
fn a_file_in_the_way_and_a_broken_engine_file_are_answers() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("world");
    std::fs::write(&path, "not a directory").unwrap();
    assert!(matches!(Store::open(&path).unwrap_err(), Error::Io { .. }));
    std::fs::remove_file(&path).unwrap();
    drop(Store::open(&path).unwrap());
    std::fs::write(path.join("version"), "nonsense").unwrap();
    assert!(matches!(Store::open(&path).unwrap_err(), Error::Corrupted { .. }));
}

#[test]
fn a_torn_tail_opens_at_an_earlier_batch_whole() {
    let (home, store) = store();
    for batch_number in 0_u8..20 {
        let mut batch = store.database.batch().durability(Some(PersistMode::SyncData));
        for row in 0_u8..3 {
            batch.insert(&store.world, [b'a', batch_number, row], [batch_number; 100]);
        }
        batch.commit().unwrap();
    }
    drop(store);
    let (file, mut written) = journal(home.path());
    let mut batches_before = 20;
    // Cut off a little more each time, in the middle of markers, keys and values.
    for cut in [1, 7, 13, 100, 251, 400] {
        written -= cut;
        OpenOptions::new().write(true).open(&file).unwrap().set_len(written).unwrap();
        let store = Store::open(home.path().join("world")).unwrap();
        let rows = world_rows(&store);
        assert_eq!(rows.len() % 3, 0, "a batch is there whole or not at all");
        let batches = rows.len() / 3;
        assert!(batches < batches_before && batches > 10, "{batches} after {batches_before}");
        assert!(rows.iter().all(|(key, _)| usize::from(key[1]) < batches), "only the newest are missing");
        batches_before = batches;
        drop(store);
        written = journal(home.path()).1;
    }
}

#[test]
fn what_is_written_after_a_torn_tail_survives() {
    let (home, store) = store();
    store.world.insert("a1", "one").unwrap();
    store.world.insert("a2", "two").unwrap();
    drop(store);
    let (file, written) = journal(home.path());
    OpenOptions::new().write(true).open(&file).unwrap().set_len(written - 3).unwrap();
    let store = Store::open(home.path().join("world")).unwrap();
    let mut batch = store.database.batch().durability(Some(PersistMode::SyncData));
    batch.insert(&store.world, "a3", "three");
    batch.commit().unwrap();
    drop(store);
    let store = Store::open(home.path().join("world")).unwrap();
    let keys: Vec<_> = world_rows(&store).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [b"a1".to_vec(), b"a3".to_vec()]);
    assert_eq!(store.stats().commits.load(Ordering::Relaxed), 0);
}

#[test]
fn a_batch_that_was_written_in_part_is_dropped_wherever_it_ends() {
    let (home, store) = store();
    store.world.insert("a1", "one").unwrap();
    store.database.persist(PersistMode::SyncData).unwrap();
    let (_, first) = journal(home.path());
    store.world.insert("a2", "two").unwrap();
    drop(store);
    let (file, written) = journal(home.path());
    let mut whole = std::fs::read(&file).unwrap();
    whole.truncate(written as usize + 64);
    for end in first..written - 1 {
        // The file is allocated ahead: behind the part are zeros, which the engine reads as lengths.
        let mut part = whole.clone();
        part[end as usize..].fill(0);
        std::fs::write(&file, &part).unwrap();
        let store = Store::open(home.path().join("world")).unwrap();
        let keys: Vec<_> = world_rows(&store).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [b"a1".to_vec()], "{} of {} bytes", end - first, written - first);
    }
}
