//! A tree of the engine: its data tables, and the list of them. The engine reads that list without looking at its checksum,
//! and deletes what is not in it.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsm_tree::{Cache, Checksum, UserKey};
use xxhash_rust::xxh3::xxh3_128;

use super::table::Table;
use super::units::Cursor;
use crate::kernel::disk::{self, entries};
use crate::kernel::store::CONTENT_KEY;

/// Bytes that a data table ends with: where the list of its sections is, and its checksum.
const SECTIONS_END_BYTES: usize = 38;

/// Bytes of a list of data tables: some 30 for each.
pub(super) const LIST_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a data table: the engine begins another one long before.
pub(super) const TABLE_BYTES_MAX: u64 = 4 << 30;

/// A data table, as the engine lists it.
pub(super) struct Listed {
    pub(super) id: u64,
    /// XXH3 of its file.
    pub(super) checksum: u128,
    /// What the sequence numbers in it are counted from.
    pub(super) base_seqno: u64,
}

/// The data tables of the tree in `directory`.
///
/// # Errors
/// What is wrong with the list, in words.
pub(super) fn listed(directory: &Path) -> Result<Vec<Listed>, String> {
    let current =
        disk::read_small(&directory.join("current"), disk::SMALL_BYTES).map_err(|error| format!("current: {error}"))?;
    let mut cursor = Cursor { bytes: &current, at: 0 };
    let fields = (cursor.u64(), cursor.u128(), cursor.u8());
    let (Some(version), Some(checksum), Some(0)) = fields else { return Err("current is damaged".to_owned()) };
    let path = directory.join(format!("v{version}"));
    let bytes = disk::read_small(&path, LIST_BYTES_MAX).map_err(|error| format!("v{version}: {error}"))?;
    if cursor.at != current.len() || xxh3_128(&bytes) != checksum {
        return Err(format!("the checksum of v{version} does not match"));
    }
    tables(&path).map_err(|error| format!("v{version}: {error}"))
}

/// Reads the list itself: for each level its runs, for each run its tables.
fn tables(path: &Path) -> io::Result<Vec<Listed>> {
    let archive = sfa::Reader::new(path).map_err(|error| io::Error::other(format!("{error:?}")))?;
    let section = archive.toc().section(b"tables").ok_or(io::ErrorKind::InvalidData)?;
    let mut bytes = Vec::new();
    section.buf_reader(path)?.read_to_end(&mut bytes)?;
    let mut cursor = Cursor { bytes: &bytes, at: 0 };
    let mut read = || {
        let mut tables = Vec::new();
        for _ in 0..cursor.u8()? {
            for _ in 0..cursor.u8()? {
                for _ in 0..cursor.u32()? {
                    let (id, _, checksum) = (cursor.u64()?, cursor.u8()?, cursor.u128()?);
                    tables.push(Listed { id, checksum, base_seqno: cursor.u64()? });
                }
            }
        }
        Some(tables)
    };
    read().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Is the list of the sections of a data table intact? The engine reserves memory for it before it verifies it, and a wrong
/// length would end the process.
fn has_sections(path: &Path) -> io::Result<bool> {
    let (file, mut end) = (disk::open(path)?, [0; SECTIONS_END_BYTES]);
    let length = file.metadata()?.len();
    let Some(at) = length.checked_sub(end.len() as u64) else { return Ok(false) };
    file.read_exact_at(&mut end, at)?;
    // Behind the magic number, the version and the kind of the checksum.
    let mut cursor = Cursor { bytes: &end, at: 6 };
    let (Some(checksum), Some(from), Some(listed)) = (cursor.u128(), cursor.u64(), cursor.u64()) else {
        return Ok(false);
    };
    if from.checked_add(listed) != Some(at) || listed > LIST_BYTES_MAX {
        return Ok(false);
    }
    let mut list = vec![0; listed as usize];
    file.read_exact_at(&mut list, from)?;
    Ok(xxh3_128(&list) == checksum)
}

/// How far the data tables of a tree are.
#[derive(Default)]
pub(super) struct Horizon {
    /// The highest sequence number in them.
    pub(super) last: Option<u64>,
    /// The highest one of the mark of a change of content.
    content: Option<u64>,
}

impl Horizon {
    /// That of the tables in `directory`.
    ///
    /// # Errors
    /// A table cannot be read.
    pub(super) fn of(directory: &Path, tables: &[Listed]) -> lsm_tree::Result<Self> {
        let (mut horizon, cache) = (Self::default(), Arc::new(Cache::with_capacity_bytes(0)));
        for Listed { id, checksum, base_seqno } in tables {
            let (path, checksum) = (directory.join("tables").join(id.to_string()), Checksum::from_raw(*checksum));
            if !has_sections(&path)? {
                return Err(lsm_tree::Error::Unrecoverable);
            }
            let table = lsm_tree::Table::recover(path, checksum, *base_seqno, 0, cache.clone(), None, false, false)?;
            horizon.last = horizon.last.max(Some(table.get_highest_seqno()));
            let mark = UserKey::from(CONTENT_KEY);
            for row in table.range(mark.clone()..=mark) {
                horizon.content = horizon.content.max(Some(row?.key.seqno));
            }
        }
        Ok(horizon)
    }

    /// The batches that must be in the journals, given the tables of `world` and `content`: every batch changes `world`, and
    /// has a mark if it changes `content`. Stores of earlier releases have no marks.
    pub(super) fn needed(world: &Self, content: &Self) -> Vec<u64> {
        let unflushed = world.content.filter(|mark| content.last < Some(*mark));
        let ahead = content.last.filter(|last| world.content.is_some() && world.last < Some(*last));
        unflushed.into_iter().chain(ahead).collect()
    }
}

/// The readable rows of a tree.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) tables: Vec<Table>,
    /// How far its tables are, if all of them are intact.
    pub(super) horizon: Option<Horizon>,
    pub(super) damage: Vec<String>,
    pub(super) lost: Vec<String>,
}

impl Tree {
    /// Reads the tree `name` in `directory`. Where the list of its tables is damaged, it reads all that are there.
    pub(super) fn read(directory: &Path, name: &str) -> io::Result<Self> {
        let (mut tree, mut is_intact) = (Self::default(), true);
        let files = table_files(&directory.join("tables"))?;
        let listed = listed(directory);
        let tables: Vec<(u64, Option<&Listed>)> = match &listed {
            Ok(tables) => tables.iter().map(|listed| (listed.id, Some(listed))).collect(),
            Err(reason) => {
                tree.damage.push(format!("the list of the data tables of {name} is damaged: {reason}"));
                is_intact = false;
                files.keys().map(|id| (*id, None)).collect()
            }
        };
        for (id, listed) in tables {
            let Some(path) = files.get(&id) else {
                tree.damage.push(format!("data table {id} of {name} is missing"));
                tree.lost
                    .push(format!("rows of {name} in data table {id}; earlier versions are kept where there are any"));
                is_intact = false;
                continue;
            };
            let table = match Table::read(path, listed) {
                Err(error) if is_no_table(&error) => {
                    tree.damage.push(format!("data table {id} of {name} cannot be read: {error}"));
                    tree.lost.push(format!(
                        "rows of {name} in data table {id}; earlier versions are kept where there are any"
                    ));
                    is_intact = false;
                    continue;
                }
                table => table?,
            };
            if table.is_damaged {
                tree.damage.push(format!("data table {id} of {name} is damaged"));
                is_intact = false;
            }
            let lost = table.lost.iter();
            tree.lost.extend(lost.map(|rows| {
                format!("{rows} of {name} in data table {id}; earlier versions are kept where there are any")
            }));
            tree.tables.push(table);
        }
        if let (true, Ok(tables)) = (is_intact, listed) {
            tree.horizon = Horizon::of(directory, &tables).ok();
        }
        Ok(tree)
    }
}

/// Is it the file that is wrong, and not the disk?
fn is_no_table(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::FileTooLarge | io::ErrorKind::IsADirectory | io::ErrorKind::Other)
}

/// The files of data tables by their numbers.
fn table_files(directory: &Path) -> io::Result<BTreeMap<u64, PathBuf>> {
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse().ok();
    Ok(entries(directory)?.into_iter().filter_map(|path| Some((number(&path)?, path))).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::kernel::store::{Error, Store};

    #[test]
    fn a_damaged_list_of_sections_is_an_answer() {
        let home = tempfile::tempdir().unwrap();
        let world = home.path().join("world");
        drop(Store::open(&world).unwrap());
        let table = table_files(&world.join("keyspaces/0/tables")).unwrap().into_values().next().unwrap();
        let mut bytes = fs::read(&table).unwrap();
        assert!(has_sections(&table).unwrap());
        let list = bytes.windows(4).rposition(|magic| magic == b"TOC!").unwrap();
        // The highest byte of its length.
        bytes[list + 7] ^= 0x40;
        fs::write(&table, &bytes).unwrap();
        assert!(matches!(Store::open(&world).unwrap_err(), Error::Corrupted { .. }));
        fs::write(&table, b"short").unwrap();
        assert!(matches!(Store::open(&world).unwrap_err(), Error::Corrupted { .. }));
    }
}
