//! Stores for the tests of repairs: the batches of a stored home, written anew into other layouts of files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fjall::PersistMode;

use super::journal::Batch;
use super::{Journal, Salvage, WORLD, journals, keyspace, written};
use crate::kernel::disk::entries;
use crate::kernel::store::{CONTENT_KEY, Store};

/// The number of a keyspace, and a key in it.
pub(crate) type Key = (u64, Vec<u8>);
/// Rows of both keyspaces.
pub(crate) type Rows = BTreeMap<Key, Vec<u8>>;
/// Rows that are there, or were removed.
type Changes = Vec<(Key, Option<Vec<u8>>)>;

/// Batches of a sample. More find nothing more, and take longer.
const HISTORY_MAX: usize = 150;

/// A store and what was written into it.
pub(crate) struct Sample {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// What was written, batch by batch.
    batches: Vec<Changes>,
    /// Every version of every row.
    versions: BTreeMap<Key, Vec<Option<Vec<u8>>>>,
    /// The rows whose newest version is in one file only, by that file.
    only_in: BTreeMap<PathBuf, BTreeSet<Key>>,
}

/// Which files a sample has.
pub(crate) struct Layout {
    /// Batches after which the rows of `world` in memory go to a data table.
    pub(crate) world: usize,
    /// The same for `content`.
    pub(crate) content: usize,
    /// Journals.
    pub(crate) journals: usize,
}

/// The batches in the journals of a store.
fn batches(store: &Path) -> Vec<Changes> {
    let mut batches = Vec::new();
    for (_, path) in journals(store).unwrap() {
        let journal = Journal::read(&path).unwrap();
        for batch in journal.batches() {
            let items = journal.items(batch).map(|item| ((item.keyspace, item.key.to_vec()), item.value));
            batches.push(items.map(|(key, value)| (key, value.map(std::borrow::Cow::into_owned))).collect());
        }
    }
    batches
}

impl Sample {
    /// Makes a store at `path` with the history that is in the journals of `from`.
    pub(crate) fn new(path: PathBuf, from: &Path, layout: &Layout) -> Self {
        let mut history = batches(from);
        history.truncate(HISTORY_MAX);
        let store = Store::open(&path).unwrap();
        for (index, changes) in history.iter().enumerate() {
            let mut batch = store.database.batch().durability(Some(PersistMode::Buffer));
            for ((number, key), value) in changes {
                let keyspace = if *number == WORLD { &store.world } else { &store.content };
                match value {
                    Some(value) => batch.insert(keyspace, key.as_slice(), value.as_slice()),
                    None => batch.remove(keyspace, key.as_slice()),
                }
            }
            if changes.iter().any(|((number, _), _)| *number != WORLD) {
                batch.insert(&store.world, CONTENT_KEY, []);
            }
            batch.commit().unwrap();
            let is_due = |every: usize| (index + 1) % every == 0;
            if is_due(layout.world) {
                store.world.rotate_memtable_and_wait().unwrap();
            }
            if is_due(layout.content) {
                store.content.rotate_memtable_and_wait().unwrap();
            }
            if is_due(layout.world * 3) {
                store.world.major_compact().unwrap();
                store.content.major_compact().unwrap();
            }
        }
        let watch = store.watch();
        drop(store);
        assert!(watch.is_closed_within(Duration::from_mins(1)));
        split_journal(&path, layout.journals);
        let mut versions: BTreeMap<Key, Vec<_>> = BTreeMap::new();
        for (key, value) in history.iter().flatten() {
            versions.entry(key.clone()).or_default().push(value.clone());
        }
        let only_in = only_in(&path);
        Self { path, batches: history, versions, only_in }
    }

    /// Every file of the store, relative to it.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut directories = vec![self.path.clone()];
        while let Some(directory) = directories.pop() {
            for path in entries(&directory).unwrap() {
                if path.is_dir() { directories.push(path) } else { files.push(path) }
            }
        }
        let relative = |path: PathBuf| path.strip_prefix(&self.path).unwrap().to_owned();
        files.into_iter().map(relative).collect()
    }

    /// Is the newest version of this row in no other file?
    pub(crate) fn is_only_in(&self, file: &Path, key: &Key) -> bool {
        self.only_in.get(file).is_some_and(|keys| keys.contains(key))
    }

    /// Are all rows in this file?
    pub(crate) fn is_all_in(&self, file: &Path) -> bool {
        self.newest().keys().all(|key| self.is_only_in(file, key))
    }

    /// Was this ever the row's value?
    pub(crate) fn was_written(&self, key: &Key, value: &[u8]) -> bool {
        let versions = self.versions.get(key);
        versions.is_some_and(|versions| versions.iter().any(|version| version.as_deref() == Some(value)))
    }

    /// The rows as they should be.
    pub(crate) fn newest(&self) -> Rows {
        let newest = |(key, versions): (&Key, &Vec<Option<Vec<u8>>>)| Some((key.clone(), versions.last()?.clone()?));
        self.versions.iter().filter_map(newest).filter(|(key, _)| is_row(key)).collect()
    }

    /// Are these the rows after some batch?
    pub(crate) fn is_earlier(&self, rows: &Rows) -> bool {
        let mut state = Rows::new();
        if rows.is_empty() {
            return true;
        }
        self.batches.iter().any(|changes| {
            for (key, value) in changes.iter().filter(|(key, _)| is_row(key)) {
                match value {
                    Some(value) => state.insert(key.clone(), value.clone()),
                    None => state.remove(key),
                };
            }
            state == *rows
        })
    }
}

/// Makes `count` journals of the only one, as if the engine had begun new ones meanwhile.
fn split_journal(store: &Path, count: usize) {
    let (number, path) = journals(store).unwrap().pop().unwrap();
    let (journal, bytes) = (Journal::read(&path).unwrap(), written(&path).unwrap());
    let mut ends: Vec<usize> = journal.batches().map(Batch::end).collect();
    let last = ends.pop().unwrap();
    let cuts = (1..count).map(|part| ends[ends.len() * part / count]).chain([last]);
    let mut from = 0;
    for (index, to) in cuts.enumerate() {
        fs::write(store.join(format!("{}.jnl", number + index as u64)), &bytes[from..to]).unwrap();
        from = to;
    }
}

/// It is not one of the store's own.
fn is_row((keyspace, key): &Key) -> bool {
    *keyspace != WORLD || key.first() != Some(&0)
}

/// The rows whose newest version is in one file only.
fn only_in(store: &Path) -> BTreeMap<PathBuf, BTreeSet<Key>> {
    let salvage = Salvage::read(store).unwrap();
    assert_eq!((&salvage.damage, &salvage.lost), (&Vec::new(), &Vec::new()), "the sample is intact");
    // The newest version of each row, and the files that have it.
    let mut holders: BTreeMap<Key, (u64, BTreeSet<PathBuf>)> = BTreeMap::new();
    let mut add = |key: Key, seqno: u64, file: PathBuf| {
        let holder = holders.entry(key).or_default();
        if seqno > holder.0 {
            *holder = (seqno, BTreeSet::new());
        }
        if seqno == holder.0 {
            holder.1.insert(file);
        }
    };
    for journal in &salvage.journals {
        for batch in journal.batches() {
            for item in journal.items(batch) {
                add((item.keyspace, item.key.to_vec()), batch.seqno.unwrap(), journal.name.clone().into());
            }
        }
    }
    for (index, tree) in salvage.trees.iter().enumerate() {
        let tables = keyspace(Path::new(""), index + 1).join("tables");
        for table in &tree.tables {
            for row in table.rows().unwrap() {
                let (key, seqno, _) = row.unwrap();
                add((index as u64 + 1, key), seqno, tables.join(table.id()));
            }
        }
    }
    let mut only_in: BTreeMap<PathBuf, BTreeSet<Key>> = BTreeMap::new();
    for (key, (_, mut files)) in holders {
        if let (1, Some(file)) = (files.len(), files.pop_first()) {
            only_in.entry(file).or_default().insert(key);
        }
    }
    only_in
}
