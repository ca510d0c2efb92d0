//! The files of the storage engine, read without the engine.
//!
//! The engine trusts its small files: where one is damaged, it may delete data tables, skip rows or cut a journal. So a store
//! is checked before the engine opens it ([`check`]), and a damaged one is only read from here ([`Salvage`]).
//!
//! | file | what it is | without it |
//! |------|------------|------------|
//! | `version`, `lock` | format of the engine; lock | nothing is lost |
//! | `keyspaces/0/` | names and options of the keyspaces | nothing is lost: they are constants |
//! | `keyspaces/{1,2}/current`, `v<n>` | list of the data tables of `world` and `content` | all tables there are read |
//! | `keyspaces/{1,2}/tables/<n>` | rows that left the journals | its rows are lost, or back at an earlier version |
//! | `<n>.jnl` | the newest batches | its batches are lost |
//!
//! A row's newest version has the highest sequence number, whichever file it is in.

mod journal;
mod merge;
#[cfg(test)]
pub(crate) mod sample;
mod table;
mod tree;
mod units;

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use agentsvc_components::kernel::record::Space;
use agentsvc_components::kernel::step::StepMark;

use self::journal::{Damage, Journal, journals};
pub(super) use self::journal::{is_journal, written};
use self::tree::{Horizon, Tree, listed};
use super::Error;
use crate::kernel::disk;

/// The keyspaces by their numbers; number 0 has the names of the others.
const NAMES: [&str; 3] = ["the keyspaces", "world", "content"];
const WORLD: u64 = 1;
const CONTENT: u64 = 2;
/// What is wrong when the journals lack a batch that they must have.
const BEHIND: &str = "the journals end before the data tables";
/// What the file `version` contains.
const VERSION: &[u8] = b"FJL\x03";

fn number(space: Space) -> u64 {
    match space {
        Space::World => WORLD,
        Space::Content => CONTENT,
    }
}

fn keyspace(store: &Path, number: usize) -> std::path::PathBuf {
    store.join("keyspaces").join(number.to_string())
}

/// Looks for damage that the engine would not notice, or would make worse. The data tables are not read. In a store without
/// damage, what a kill or a power loss left of a batch at the end of the last journal is removed: the engine would take it for
/// items until it finds that they are none.
///
/// # Errors
/// [`Error::Corrupted`] for damage, [`Error::InUse`] when another process has it open, [`Error::Io`] when the disk fails.
pub(super) fn check(store: &Path) -> Result<(), Error> {
    let _lock = lock(store)?;
    let failed = |source| Error::Io { path: store.to_owned(), source };
    let corrupted = |reason| Err(Error::Corrupted { path: store.to_owned(), reason });
    if let Some(reason) = foreign(store).map_err(failed)? {
        return corrupted(reason);
    }
    let mut horizons = Vec::new();
    for (number, name) in NAMES.iter().enumerate() {
        let directory = keyspace(store, number);
        let tables = match listed(&directory) {
            Ok(tables) => tables,
            Err(reason) => return corrupted(format!("the list of the data tables of {name}: {reason}")),
        };
        match Horizon::of(&directory, &tables) {
            Ok(horizon) => horizons.push(horizon),
            Err(error) => return Err(Error::from_engine(store, error.into())),
        }
    }
    let mut needed = Horizon::needed(&horizons[1], &horizons[2]);
    let journals = journals(store).map_err(failed)?;
    if let Some(missing) = missing(&journals).first() {
        return corrupted(format!("{missing} is missing"));
    }
    let (mut last, mut unfinished) = (None, None);
    for (index, (_, path)) in journals.iter().enumerate() {
        let mut journal = Journal::read(path).map_err(failed)?;
        match journal.damage(index + 1 == journals.len()) {
            Some(damage) if damage.is_unsynced => journal.cut(),
            Some(damage) => return corrupted(described(&journal, &damage)),
            None => {}
        }
        for batch in journal.batches() {
            if batch.seqno <= last {
                return corrupted(format!("the sequence numbers of journal {} are damaged", journal.name));
            }
            last = batch.seqno;
            needed.retain(|seqno| batch.seqno != Some(*seqno));
        }
        unfinished = journal.unfinished().map(|end| (path, end));
    }
    if !needed.is_empty() {
        return corrupted(BEHIND.to_owned());
    }
    let Some((journal, end)) = unfinished else { return Ok(()) };
    File::options()
        .write(true)
        .open(journal)
        .and_then(|file| file.set_len(end).and_then(|()| file.sync_all()))
        .map_err(failed)
}

/// Says what in the store is something else than a file or directory of the engine: it ends the process then, or removes what
/// a link leads to. The directory of the store itself may be a link.
fn foreign(store: &Path) -> io::Result<Option<String>> {
    let entries = |directory: &Path| disk::entries(directory).map(Vec::into_iter);
    let journals = entries(store)?.filter(|path| path.extension().is_some_and(|ending| ending == "jnl"));
    let keyspaces = store.join("keyspaces");
    let numbered: Vec<PathBuf> = entries(&keyspaces)?.collect();
    for path in journals.chain([keyspaces.clone()]).chain(numbered.iter().cloned()) {
        let Some(kind) = disk::there(fs::symlink_metadata(&path))?.map(|found| found.file_type()) else { continue };
        let name = path.strip_prefix(store).unwrap_or(&path).display();
        if kind.is_symlink() {
            return Ok(Some(format!("{name} is a symbolic link; put what it leads to in its place")));
        }
        let is_number = || path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.parse::<u64>().is_ok());
        let fits =
            kind.is_file() || kind.is_dir() && (path == keyspaces || path.starts_with(&keyspaces) && is_number());
        if !fits {
            return Ok(Some(format!("{name} is not part of a store; move it away")));
        }
    }
    unreadable(store, &numbered)
}

/// Says which of the files that the engine reads is none that it wrote: one that is no regular file may keep it waiting for
/// ever, and one that is far too large would be read whole.
fn unreadable(store: &Path, keyspaces: &[PathBuf]) -> io::Result<Option<String>> {
    let mut files = vec![store.join("version"), store.join("lock")];
    for keyspace in keyspaces.iter().filter(|path| path.is_dir()) {
        files.extend(disk::entries(keyspace)?);
        let tables = keyspace.join("tables");
        if tables.is_dir() {
            files.extend(disk::entries(&tables)?);
        }
    }
    for path in files {
        let Some(found) = disk::there(fs::symlink_metadata(&path))? else { continue };
        let name = path.strip_prefix(store).unwrap_or(&path).display();
        if !found.is_file() && !found.is_dir() {
            return Ok(Some(format!("{name} is not a regular file; move it away")));
        }
        let max = match path.file_name().and_then(OsStr::to_str) {
            Some("version" | "lock" | "current") => disk::SMALL_BYTES,
            Some(list) if list.starts_with('v') => tree::LIST_BYTES_MAX,
            _ => tree::TABLE_BYTES_MAX,
        };
        if found.is_file() && found.len() > max {
            return Ok(Some(format!("{name} is larger than {max} bytes; move it away")));
        }
    }
    Ok(None)
}

/// Takes the engine's lock, if its file is there.
///
/// # Errors
/// [`Error::InUse`], or [`Error::Io`].
pub(super) fn lock(store: &Path) -> Result<Option<File>, Error> {
    let Ok(file) = disk::open(&store.join("lock")) else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(Error::InUse { path: store.to_owned() }),
        Err(TryLockError::Error(source)) => Err(Error::Io { path: store.to_owned(), source }),
    }
}

/// The journals that should be there: their numbers have no gap, and there is at least one.
fn missing(journals: &[(u64, std::path::PathBuf)]) -> Vec<String> {
    if journals.is_empty() {
        return vec!["every journal".to_owned()];
    }
    let pairs = journals.iter().zip(journals.iter().skip(1));
    let gaps = pairs.filter(|((one, _), (next, _))| next - one > 1);
    let name = |((one, _), (next, _)): (&(u64, _), &(u64, _))| match next - one {
        2 => format!("journal {}.jnl", one + 1),
        _ => format!("every journal between {one}.jnl and {next}.jnl"),
    };
    gaps.map(name).collect()
}

fn described(journal: &Journal, damage: &Damage) -> String {
    format!("{} bytes at {} of journal {} cannot be read", damage.bytes, damage.at, journal.name)
}

/// What can be read of a store.
pub(super) struct Salvage {
    /// The trees of `world` and `content`.
    trees: [Tree; 2],
    journals: Vec<Journal>,
    /// What is damaged, one text each.
    pub(super) damage: Vec<String>,
    /// What is lost, one text each.
    pub(super) lost: Vec<String>,
}

impl Salvage {
    /// Reads the store at `store` and changes nothing.
    ///
    /// # Errors
    /// The disk failed.
    pub(super) fn read(store: &Path) -> io::Result<Self> {
        let (mut damage, mut lost) = (Vec::new(), Vec::new());
        damage.extend(unreadable(store, &disk::entries(&store.join("keyspaces"))?)?);
        if disk::read_small(&store.join("version"), disk::SMALL_BYTES).ok().as_deref() != Some(VERSION) {
            damage.push("the file version is damaged".to_owned());
        }
        if !store.join("lock").is_file() {
            damage.push("the file lock is missing".to_owned());
        }
        let names = Tree::read(&keyspace(store, 0), NAMES[0])?;
        // What is in it is no row of anybody, and is made anew.
        damage.extend(names.damage);
        let tree = |number: usize| Tree::read(&keyspace(store, number), NAMES[number]);
        let mut trees = [tree(1)?, tree(2)?];
        for tree in &mut trees {
            damage.append(&mut tree.damage);
            lost.append(&mut tree.lost);
        }
        let mut salvage = Self { trees, journals: Vec::new(), damage, lost };
        salvage.read_journals(store)?;
        Ok(salvage)
    }

    fn read_journals(&mut self, store: &Path) -> io::Result<()> {
        let files = journals(store)?;
        for missing in missing(&files) {
            self.damage.push(format!("{missing} is missing"));
            self.lost.push(format!("the changes in {missing}"));
        }
        self.journals = files.iter().map(|(_, path)| Journal::read(path)).collect::<io::Result<_>>()?;
        for index in 0..self.journals.len() {
            let journal = &self.journals[index];
            let Some(damage) = journal.damage(index + 1 == self.journals.len()) else { continue };
            let text = described(journal, &damage);
            if damage.is_loss && !damage.is_unsynced {
                self.lost.push(format!("{}: {text}", self.changes(index, &damage)));
            }
            self.damage.push(text);
            if damage.is_unsynced {
                self.journals[index].cut();
            }
        }
        if order(&mut self.journals) {
            self.damage.push("sequence numbers of batches in the journals are damaged".to_owned());
        }
        if let [Some(world), Some(content)] = self.trees.each_ref().map(|tree| tree.horizon.as_ref()) {
            let mut needed = Horizon::needed(world, content);
            let batches = self.journals.iter().flat_map(Journal::batches);
            batches.for_each(|batch| needed.retain(|seqno| batch.seqno != Some(*seqno)));
            if !needed.is_empty() && self.lost.is_empty() {
                self.damage.push(BEHIND.to_owned());
                self.lost.push("the changes that were not in data tables yet, from the end of the journals".to_owned());
            }
        }
        Ok(())
    }

    /// Says which changes were where the damage of a journal is.
    fn changes(&self, index: usize, damage: &Damage) -> String {
        let (before, after) = self.journals[index].steps_around(damage);
        let of = |journal: &Journal| journal.batches().filter_map(|batch| journal.step(batch)).next_back();
        let before = before.or_else(|| self.journals[..index].iter().rev().find_map(of));
        let first = |journal: &Journal| journal.batches().find_map(|batch| journal.step(batch));
        let after = after.or_else(|| self.journals[index + 1..].iter().find_map(first));
        let step = |step: StepMark| format!("step {} of {}", step.number, step.at);
        match (before.map(step), after.map(step)) {
            (Some(before), Some(after)) => format!("the changes between {before} and {after}"),
            (Some(before), None) => format!("the changes after {before}"),
            (None, Some(after)) => format!("the changes before {after}"),
            (None, None) => "the changes".to_owned(),
        }
    }
}

/// Makes the sequence numbers of the batches ascend, as the batches were written; true when they did not.
fn order(journals: &mut [Journal]) -> bool {
    let mut batches: Vec<_> = journals.iter_mut().flat_map(Journal::batches_mut).collect();
    let mut is_wrong = false;
    for index in 0..batches.len() {
        let at = |index: usize| batches.get(index).and_then(|batch| batch.seqno);
        let (before, next, third) = (index.checked_sub(1).and_then(at), at(index + 1), at(index + 2));
        let is_too_low = at(index) <= before;
        // Unless it is the next one that is too low.
        let is_too_high = next.is_some_and(|next| at(index) >= Some(next) && before < Some(next))
            && third.is_none_or(|third| at(index) >= Some(third));
        let is_first_low = index == 0 && at(0).is_none();
        if (index > 0 && is_too_low) || is_too_high || is_first_low {
            let fitting = before.map_or_else(|| next.unwrap_or(1).saturating_sub(1), |before| before.saturating_add(1));
            batches[index].seqno = Some(fitting);
            is_wrong = true;
        }
    }
    is_wrong
}
