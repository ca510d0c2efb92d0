//! A damaged store is copied into a new one as far as it can be read; the old one stays, beside it (`agentsvc doctor --repair`).
//!
//! | what is damaged                        | then                                                                     |
//! |----------------------------------------|--------------------------------------------------------------------------|
//! | blocks of a table                      | what stands before the first and behind the last of them is copied       |
//! | the journal, so that nothing opens     | the steps before the damage are copied, those behind it are lost         |
//! | the tables, so that nothing opens      | nothing is changed: a backup or a snapshot is the only way                |
//! | a record                               | it is left out, and with it what cannot be without it ([`Mend`])         |
//!
//! Everything that is lost is told. The rows of the copy make a world that restores: that is tried before it takes the
//! old one's place. The old one's files get second names beside it first, and then the two change places in one step: a
//! kill at any point leaves one of them whole, and never the old one lost.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agentsvc_components::kernel::record::Space;
use fjall::{Guard, Readable};

use super::view::StoreView;
use super::{Error, Store, exchange};
use crate::kernel::disk::remove_dir;
use crate::kernel::store::rows::{Row, RowTotals};

/// What a repair came to.
#[derive(Debug)]
pub struct Repaired {
    /// What the new store holds.
    pub kept: RowTotals,
    /// What is lost, one sentence each.
    pub lost: Vec<String>,
    /// Where the old store is.
    pub aside: PathBuf,
}

/// Gives the rows that make a world of those that can be read. It is also given the keys of the content rows, which it only
/// looks at, and where it says what is lost.
pub type Mend =
    fn(Vec<Pair>, &mut dyn Iterator<Item = Vec<u8>>, &mut Vec<String>) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, String>;

/// Copies what can be read of the store at `path` into a new one, which takes its place. Nobody may use the store. `mend`
/// knows what the rows of the world need.
///
/// # Errors
/// [`Error::Corrupted`] when it cannot be opened with or without its journal, or when what is left makes no world;
/// [`Error::Io`] when the disk fails. The store is as it was then.
pub fn repair(path: &Path, mend: Mend) -> Result<Repaired, Error> {
    let mut lost = Vec::new();
    let (trial, made) = (beside(path, "trial"), exchange::next(path));
    remove(&trial)?;
    remove(&made)?;
    // The old store is closed before anything takes its place.
    let result = open(path, &trial, &mut lost).and_then(|store| copy(&store, path, &made, mend, &mut lost));
    remove(&trial)?;
    let kept = result?;
    let aside = free_name(path);
    let exchanged = exchange::keep_aside(path, &aside).and_then(|()| exchange::exchange(path));
    exchanged.map_err(|source| Error::Io { path: path.to_owned(), source })?;
    // The old store has its other names; what cannot be removed is removed by a start.
    let _ = remove_dir(&made);
    Ok(Repaired { kept, lost, aside })
}

/// Opens the store; when it does not open, a copy of it with as much of its journal as can be read.
fn open(path: &Path, trial: &Path, lost: &mut Vec<String>) -> Result<Store, Error> {
    let error = match Store::open(path) {
        Ok(store) => return Ok(store),
        Err(error @ (Error::InUse { .. } | Error::Newer { .. })) => return Err(error),
        Err(error) => error,
    };
    let journals = journals(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    // The first so many journals whole, and a part of the next.
    let opens =
        |whole: usize, part: u64| attempt(path, trial, &journals[..whole], journals.get(whole).map(|it| (it, part)));
    let whole = (0..=journals.len()).rev().find_map(|whole| opens(whole, 0).ok().map(|_| whole)).ok_or(error)?;
    let size = journals.get(whole).map_or(0, |(_, size)| *size);
    let (mut good, mut bad) = (0, size + 1);
    while good + 1 < bad {
        let middle = good + (bad - good) / 2;
        match opens(whole, middle) {
            Ok(_) => good = middle,
            Err(_) => bad = middle,
        }
    }
    if let Some((journal, size)) = journals.get(whole) {
        let name = journal.file_name().unwrap_or_default().to_string_lossy();
        lost.push(format!("the steps after byte {good} of {size} of journal {name}, and those of later journals"));
    }
    let store = opens(whole, good)?;
    store.check_format()?;
    Ok(store)
}

/// The journals of a store in the order in which they were written, with their sizes.
fn journals(path: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let mut journals = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if is_journal(&entry.path()) {
            journals.push((entry.path(), entry.metadata()?.len()));
        }
    }
    let number = |path: &Path| path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
    journals.sort_by_key(|(path, _)| number(path));
    Ok(journals)
}

fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "jnl")
}

/// Opens a copy with these journals and the beginning of one more.
fn attempt(
    path: &Path,
    trial: &Path,
    whole: &[(PathBuf, u64)],
    part: Option<(&(PathBuf, u64), u64)>,
) -> Result<Store, Error> {
    remove(trial)?;
    let all = whole
        .iter()
        .map(|(journal, size)| (journal, *size))
        .chain(part.map(|((journal, _), length)| (journal, length)));
    let copied = copy_files(path, trial).and_then(|()| {
        for (journal, length) in all.filter(|(_, length)| *length > 0) {
            let copy = trial.join(journal.file_name().unwrap_or_default());
            fs::copy(journal, &copy)?;
            fs::File::options().write(true).open(&copy)?.set_len(length)?;
        }
        Ok(())
    });
    copied.map_err(|source| Error::Io { path: trial.to_owned(), source })?;
    // Whether the format record is there is judged at the end: the shorter the journal, the less there is.
    Store::open_cut(trial)
}

/// Copies a store without its journals. Tables are never written again, so that a link is as good as a copy.
fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_files(&path, &target)?;
        } else if from.ends_with("tables") {
            fs::hard_link(&path, &target)?;
        } else if !is_journal(&path) {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

/// Makes the new store.
fn copy(store: &Store, path: &Path, made: &Path, mend: Mend, lost: &mut Vec<String>) -> Result<RowTotals, Error> {
    let view = store.view();
    let mut world = Vec::new();
    for row in readable(&view, Space::World, lost) {
        world.push(row?);
    }
    let mut unsaid = Vec::new();
    let content = readable(&view, Space::Content, &mut unsaid);
    let mut keys = content.filter_map(|row| row.ok().map(|(key, _)| key));
    let world = mend(world, &mut keys, lost).map_err(|reason| Error::Corrupted { path: path.to_owned(), reason })?;
    let world = world.into_iter().map(|(key, value)| Ok::<_, Error>(Row { space: Space::World, key, value }));
    let content = readable(&view, Space::Content, lost);
    let content = content.map(|row| row.map(|(key, value)| Row { space: Space::Content, key, value }));
    Store::build(made, world.chain(content))
}

/// A row's key and value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// The rows of a space that can be read: those before the first damage and those behind the last one.
fn readable<'v>(
    view: &'v StoreView,
    space: Space,
    lost: &mut Vec<String>,
) -> impl Iterator<Item = Result<Pair, Error>> + Send + use<'v> {
    let keyspace = view.store.keyspace(space);
    let (count, last, is_whole) = walk(view.snapshot.iter(keyspace));
    let tail = if is_whole { None } else { walk(view.snapshot.iter(keyspace).rev()).1 };
    let tail = tail.filter(|tail| last.as_ref().is_none_or(|last| tail > last));
    if !is_whole {
        let (name, after) =
            (if space == Space::World { "world" } else { "content" }, last.as_deref().unwrap_or_default());
        let before = tail.as_deref().map_or_else(|| "the end".to_owned(), agentsvc_systems::kernel::record::hex);
        let after = agentsvc_systems::kernel::record::hex(after);
        lost.push(format!("the rows of {name} between {after} and {before}: they cannot be read"));
    }
    let head = view.snapshot.iter(keyspace).take(count).map(pair);
    let tail = tail.map(move |tail| view.snapshot.range(keyspace, tail..).map(pair));
    // The store's own rows are written anew.
    let own = |row: &Result<Pair, _>| row.as_ref().is_ok_and(|(key, _)| key.first().is_none_or(|kind| *kind == 0));
    let all = head.chain(tail.into_iter().flatten()).filter(move |row| space == Space::Content || !own(row));
    all.map(|row| row.map_err(|error| view.store.failed(error)))
}

fn pair(row: Guard) -> Result<Pair, fjall::Error> {
    row.into_inner().map(|(key, value)| (key.to_vec(), value.to_vec()))
}

/// Reads rows up to the first that cannot be: how many there are, the key of the last, and whether all could be read.
fn walk(rows: impl Iterator<Item = Guard>) -> (usize, Option<Vec<u8>>, bool) {
    let (mut count, mut last) = (0, None);
    for row in rows {
        let Ok((key, _)) = pair(row) else { return (count, last, false) };
        (count, last) = (count + 1, Some(key));
    }
    (count, last, true)
}

/// A name beside the store.
fn beside(path: &Path, word: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}.{word}"))
}

/// The first name for the old store that nothing has.
fn free_name(path: &Path) -> PathBuf {
    let mut names = (1..).map(|number| beside(path, &format!("damaged-{number}")));
    names.find(|name| !name.exists()).unwrap_or_else(|| beside(path, "damaged"))
}

fn remove(path: &Path) -> Result<(), Error> {
    remove_dir(path).map_err(|source| Error::Io { path: path.to_owned(), source })
}
