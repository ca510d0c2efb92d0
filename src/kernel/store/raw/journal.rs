//! A journal of the engine, read without the engine.
//!
//! | entry | bytes |
//! |-------|-------|
//! | start of a batch | 1, number of items (4), sequence number (8) |
//! | item | 2, type, compression, keyspace (8), length of key (2), of value (4), of stored value (4), key, stored value |
//! | cleared keyspace | 4, keyspace (8) |
//! | end of a batch | 3, XXH3 of its items (8), `FJL\x03` |
//!
//! Numbers are little-endian. Behind the last batch the file is filled with zeros. The checksum does not cover the start,
//! so the order of the sequence numbers is checked as well.

use std::borrow::Cow;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use agentsvc_components::kernel::step::{STEP_KEY, StepMark};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use xxhash_rust::xxh3::xxh3_64;

use super::units::{Cursor, Units, units};
use super::{CONTENT, WORLD};
use crate::kernel::disk;
use crate::kernel::store::CONTENT_KEY;
use crate::kernel::store::born::BORN_KEY;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
/// What an end ends with.
const TRAILER: [u8; 4] = *b"FJL\x03";
/// Bytes of a start.
const START_BYTES: usize = 13;
/// Bytes that an item has at least.
const ITEM_BYTES: usize = 21;
/// A power loss leaves whole sectors unwritten.
const SECTOR_BYTES: usize = 512;
/// The highest number of a keyspace.
const KEYSPACE_MAX: u64 = 2;

/// A batch whose items are intact.
pub(super) struct Batch {
    items: Range<usize>,
    /// Its sequence number, unless that is lost.
    pub(super) seqno: Option<u64>,
}

impl Batch {
    /// Where it ends.
    #[cfg(test)]
    pub(super) fn end(&self) -> usize {
        self.items.end + 1 + size_of::<u64>() + TRAILER.len()
    }
}

/// A row that was written, or removed.
pub(super) struct Item<'b> {
    pub(super) keyspace: u64,
    pub(super) key: &'b [u8],
    /// Nothing: removed.
    pub(super) value: Option<Cow<'b, [u8]>>,
}

/// What is wrong with a journal.
pub(super) struct Damage {
    /// Where.
    pub(super) at: usize,
    /// Unreadable bytes.
    pub(super) bytes: usize,
    /// Changes may be lost.
    pub(super) is_loss: bool,
    /// It may be what a power loss leaves of changes that were never acknowledged.
    pub(super) is_unsynced: bool,
}

/// A journal in memory.
pub(super) struct Journal {
    /// The name of its file.
    pub(super) name: String,
    bytes: Vec<u8>,
    units: Units<Batch>,
}

/// The journals of a store with their numbers, in the order in which they were written.
pub(super) fn journals(store: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut journals = Vec::new();
    for path in crate::kernel::disk::entries(store)? {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if let (Some(number), true) = (stem.and_then(|stem| stem.parse().ok()), is_journal(&path)) {
            journals.push((number, path));
        }
    }
    journals.sort_unstable();
    Ok(journals)
}

pub(in crate::kernel::store) fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "jnl")
}

/// Reads a journal up to the last byte that is not zero. Most of a new one is a hole.
pub(in crate::kernel::store) fn written(path: &Path) -> io::Result<Vec<u8>> {
    let file = disk::open(path)?;
    let mut end = 0;
    loop {
        match seek(&file, SeekFrom::Data(end)) {
            Ok(data) => end = seek(&file, SeekFrom::Hole(data))?,
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        }
    }
    seek(&file, SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.take(end).read_to_end(&mut bytes)?;
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    Ok(bytes)
}

impl Journal {
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self::parse(name, written(path)?))
    }

    fn parse(name: String, bytes: Vec<u8>) -> Self {
        let units = units(bytes.len(), |at| batch(&bytes, at, true), |at| batch(&bytes, at, false));
        Self { name, bytes, units }
    }

    /// Its readable batches in order.
    pub(super) fn batches(&self) -> impl DoubleEndedIterator<Item = &Batch> {
        self.units.head.iter().chain(&self.units.tail)
    }

    pub(super) fn batches_mut(&mut self) -> impl Iterator<Item = &mut Batch> {
        self.units.head.iter_mut().chain(&mut self.units.tail)
    }

    /// The items of a batch of this journal.
    pub(super) fn items<'b>(&'b self, batch: &Batch) -> impl Iterator<Item = Item<'b>> {
        let mut cursor = Cursor { bytes: &self.bytes[..batch.items.end], at: batch.items.start };
        std::iter::from_fn(move || {
            loop {
                match cursor.u8()? {
                    ITEM => return item(&mut cursor),
                    _ => _ = cursor.take(8)?,
                }
            }
        })
    }

    /// The newest step of a batch.
    pub(super) fn step(&self, batch: &Batch) -> Option<StepMark> {
        let mark = self.items(batch).find(|item| item.keyspace == WORLD && item.key == STEP_KEY)?;
        StepMark::from_bytes(&mark.value?)
    }

    /// The steps before and after the damage, as far as this journal knows them.
    pub(super) fn steps_around(&self, damage: &Damage) -> (Option<StepMark>, Option<StepMark>) {
        let before = |batch: &&Batch| batch.items.start <= damage.at;
        let step = |batch: &Batch| self.step(batch);
        (
            self.batches().filter(before).filter_map(step).next_back(),
            self.batches().filter(|batch| !before(batch)).find_map(step),
        )
    }

    /// What is wrong with it. A batch that was still being written ends the last journal.
    ///
    /// A sync writes all that stands before, and a batch is synced before the next one begins; earlier releases did not sync
    /// those that only erase. So what a power loss tears are such batches, as many as there are since the last sync, and one
    /// more batch of any kind behind them. Damage of a batch with changes that another one follows is never taken for that.
    pub(super) fn damage(&self, is_last: bool) -> Option<Damage> {
        let Units { gap, tail, end, .. } = &self.units;
        if let Some(first) = tail.first() {
            let lacks_start = first.seqno.is_none() && gap.len() == START_BYTES;
            let is_loss = !gap.is_empty() && !lacks_start;
            let torn = Torn::at(&self.bytes, gap.clone());
            let only_erases =
                |batch: &Batch| self.items(batch).all(|item| is_erasure(item.keyspace, item.key, item.value.is_none()));
            let is_unsynced = is_loss
                && is_last
                && torn.is_by_power_loss
                && !torn.has_changes
                && tail[..tail.len() - 1].iter().all(only_erases);
            return Some(Damage { at: gap.start, bytes: gap.len(), is_loss, is_unsynced });
        }
        let rest = &self.bytes[*end..];
        // The engine begins a journal for the batches of rows in memory.
        if !is_last && *end == 0 {
            return Some(Damage { at: 0, bytes: rest.len(), is_loss: true, is_unsynced: false });
        }
        let torn = Torn::at(&self.bytes, *end..self.bytes.len());
        let is_unwritten = torn.is_unfinished || (torn.is_by_power_loss && !rest.ends_with(&TRAILER));
        if rest.is_empty() || (is_last && is_unwritten) {
            return None;
        }
        let is_unsynced = is_last && torn.is_by_power_loss;
        Some(Damage { at: *end, bytes: rest.len(), is_loss: true, is_unsynced })
    }

    /// Forgets the batches after the damage.
    pub(super) fn cut(&mut self) {
        self.units.tail.clear();
        self.units.end = self.units.gap.start;
    }

    /// Where the readable batches end, when something stands behind them.
    pub(super) fn unfinished(&self) -> Option<u64> {
        (self.units.end < self.bytes.len()).then_some(self.units.end as u64)
    }
}

/// The first batch of a range of bytes that cannot be read.
struct Torn {
    /// The range ends before the batch: it was still being written.
    is_unfinished: bool,
    /// A sector of it is empty, and it can be read up to there.
    is_by_power_loss: bool,
    /// It does more than erase, as far as it can be read.
    has_changes: bool,
}

impl Torn {
    fn at(bytes: &[u8], range: Range<usize>) -> Self {
        let bytes = &bytes[..range.end];
        let empty = empty_sector(bytes, range.clone());
        let mut cursor = Cursor { bytes, at: range.start };
        let (mut has_changes, mut is_unfinished) = (false, false);
        if cursor.u8() == Some(START) {
            cursor.at = range.start + START_BYTES;
            loop {
                let here = cursor.at;
                let read = match cursor.u8() {
                    Some(ITEM) => raw_item(&mut cursor).map(|item| {
                        let is_readable = empty.is_none_or(|empty| cursor.at <= empty);
                        has_changes |= is_readable && !is_erasure(item.keyspace, item.key, item.kind != 0);
                    }),
                    Some(CLEAR) => cursor.take(size_of::<u64>()).map(drop),
                    Some(END) => {
                        is_unfinished = cursor.take(size_of::<u64>() + TRAILER.len()).is_none();
                        break;
                    }
                    Some(_) => break,
                    None => None,
                };
                if read.is_none() {
                    cursor.at = here;
                    // Else what it begins with is damaged.
                    is_unfinished = is_sound(bytes.get(here + 1..here + ITEM_BYTES).unwrap_or_default());
                    break;
                }
            }
        }
        Self {
            is_unfinished: is_unfinished && !bytes.ends_with(&TRAILER),
            is_by_power_loss: empty.is_some_and(|at| bytes[cursor.at.min(at)..at].iter().all(|byte| *byte == 0)),
            has_changes,
        }
    }
}

/// The first empty sector of a range; its first one counts from where the range begins.
fn empty_sector(bytes: &[u8], range: Range<usize>) -> Option<usize> {
    let ends = (range.start / SECTOR_BYTES + 1..=range.end / SECTOR_BYTES).map(|number| number * SECTOR_BYTES);
    let starts = ends.map(|end| (range.start.max(end - SECTOR_BYTES), end));
    starts.into_iter().find(|(start, end)| bytes[*start..*end].iter().all(|byte| *byte == 0)).map(|(start, _)| start)
}

/// Is this among what batches have that only erase: rows of content that are removed, and the store's own rows beside them?
fn is_erasure(keyspace: u64, key: &[u8], is_removed: bool) -> bool {
    match keyspace {
        CONTENT => is_removed,
        WORLD => key == CONTENT_KEY || key == BORN_KEY,
        _ => false,
    }
}

/// Reads the batch at `at`. Unless it must be whole, it may lack its start, or have a wrong number of items or trailer: the
/// checksum of the items decides.
fn batch(bytes: &[u8], at: usize, whole: bool) -> Option<(Batch, usize)> {
    let mut cursor = Cursor { bytes, at };
    let start = match cursor.u8()? {
        START => Some((cursor.u32()?, cursor.u64()?)),
        ITEM if !whole => {
            cursor.at = at;
            None
        }
        _ => return None,
    };
    let (first, mut count) = (cursor.at, 0_u32);
    loop {
        let here = cursor.at;
        match cursor.u8()? {
            ITEM => _ = raw_item(&mut cursor)?,
            CLEAR => _ = cursor.take(8)?,
            END if count > 0 => {
                let (checksum, trailer) = (cursor.u64()?, cursor.take(TRAILER.len())?);
                if checksum != xxh3_64(&bytes[first..here]) {
                    return None;
                }
                let is_whole = trailer == TRAILER && start.is_some_and(|(items, _)| items == count);
                let batch = Batch { items: first..here, seqno: start.map(|(_, seqno)| seqno) };
                return (is_whole || !whole).then_some((batch, cursor.at));
            }
            _ => return None,
        }
        count += 1;
    }
}

/// An item as it is stored.
struct RawItem<'b> {
    kind: u8,
    is_compressed: bool,
    keyspace: u64,
    key: &'b [u8],
    value_bytes: usize,
    stored: &'b [u8],
}

/// Can what an item begins with, behind its tag, be what was written? Nothing can.
fn is_sound(head: &[u8]) -> bool {
    head.is_empty() || (head[0] <= 2 && head[1] <= 1 && head[2] <= KEYSPACE_MAX as u8 && head[3..10] == [0; 7])
}

/// Reads an item behind its tag.
fn raw_item<'b>(cursor: &mut Cursor<'b>) -> Option<RawItem<'b>> {
    let (kind, compression, keyspace) = (cursor.u8()?, cursor.u8()?, cursor.u64()?);
    if kind > 2 || compression > 1 || keyspace > KEYSPACE_MAX {
        return None;
    }
    let (key_bytes, value_bytes, stored_bytes) = (cursor.u16()?, cursor.u32()?, cursor.u32()?);
    let key = cursor.take(key_bytes.into())?;
    let stored = cursor.take(stored_bytes as usize)?;
    let value_bytes = value_bytes as usize;
    Some(RawItem { kind, is_compressed: compression == 1, keyspace, key, value_bytes, stored })
}

/// Reads an item of a batch whose checksum is right.
fn item<'b>(cursor: &mut Cursor<'b>) -> Option<Item<'b>> {
    let RawItem { kind, is_compressed, keyspace, key, value_bytes, stored } = raw_item(cursor)?;
    let value = match (kind, is_compressed) {
        (0, false) => Some(Cow::Borrowed(stored)),
        (0, true) => Some(Cow::Owned(lz4_flex::block::decompress(stored, value_bytes).ok()?)),
        _ => None,
    };
    Some(Item { keyspace, key, value })
}

#[cfg(test)]
mod tests;
