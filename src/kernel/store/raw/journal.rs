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
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use agentsvc_components::kernel::step::{STEP_KEY, StepMark};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use xxhash_rust::xxh3::xxh3_64;

use super::WORLD;
use super::units::{Cursor, Units, units};

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
/// What an end ends with.
const TRAILER: [u8; 4] = *b"FJL\x03";
/// Bytes of a start.
const START_BYTES: usize = 13;
/// A power loss leaves whole sectors unwritten.
const SECTOR_BYTES: usize = 512;
/// The highest number of a keyspace.
const KEYSPACE_MAX: u64 = 2;

/// A batch whose items are intact.
pub(super) struct Batch {
    items: std::ops::Range<usize>,
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
    let file = File::open(path)?;
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
    pub(super) fn damage(&self, is_last: bool) -> Option<Damage> {
        let Units { gap, tail, end, .. } = &self.units;
        if let Some(first) = tail.first() {
            let lacks_start = first.seqno.is_none() && gap.len() == START_BYTES;
            return Some(Damage {
                at: gap.start,
                bytes: gap.len(),
                is_loss: !gap.is_empty() && !lacks_start,
                is_unsynced: is_last && tail.len() == 1 && self.has_empty_sector(gap.clone()),
            });
        }
        let rest = &self.bytes[*end..];
        // The engine begins a journal for the batches of rows in memory.
        if !is_last && *end == 0 {
            return Some(Damage { at: 0, bytes: rest.len(), is_loss: true, is_unsynced: false });
        }
        if rest.is_empty() || (is_last && !rest.ends_with(&TRAILER)) {
            return None;
        }
        let is_unsynced = is_last && self.has_empty_sector(*end..self.bytes.len());
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

    fn has_empty_sector(&self, range: std::ops::Range<usize>) -> bool {
        let sectors = range.start.div_ceil(SECTOR_BYTES)..range.end / SECTOR_BYTES;
        let sector = |number: usize| &self.bytes[number * SECTOR_BYTES..(number + 1) * SECTOR_BYTES];
        sectors.into_iter().any(|number| sector(number).iter().all(|byte| *byte == 0))
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
mod tests {
    use super::*;

    /// A batch as the engine writes it.
    fn encoded(seqno: u64, rows: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut items = Vec::new();
        for (key, value) in rows {
            items.extend([ITEM, 0, 0]);
            items.extend(WORLD.to_le_bytes());
            items.extend((key.len() as u16).to_le_bytes());
            items.extend((value.len() as u32).to_le_bytes());
            items.extend((value.len() as u32).to_le_bytes());
            items.extend(*key);
            items.extend(*value);
        }
        let mut bytes = vec![START];
        bytes.extend((rows.len() as u32).to_le_bytes());
        bytes.extend(seqno.to_le_bytes());
        bytes.extend(&items);
        bytes.push(END);
        bytes.extend(xxh3_64(&items).to_le_bytes());
        bytes.extend(TRAILER);
        bytes
    }

    fn journal(bytes: Vec<u8>) -> Journal {
        Journal::parse("0.jnl".to_owned(), bytes)
    }

    fn keys(journal: &Journal) -> Vec<&[u8]> {
        journal.batches().flat_map(|batch| journal.items(batch)).map(|item| item.key).collect()
    }

    #[test]
    fn batches_after_damage_are_read() {
        let batches = [encoded(1, &[(b"a", b"1")]), encoded(2, &[(b"b", b"2")]), encoded(3, &[(b"c", b"3")])];
        let whole = batches.concat();
        let read = journal(whole.clone());
        assert!(read.damage(false).is_none() && keys(&read) == [b"a", b"b", b"c"]);
        let second = batches[0].len()..batches[0].len() + batches[1].len();
        for at in second.clone() {
            for mask in [1, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= mask;
                let read = journal(bytes);
                let found = keys(&read);
                let in_seqno = (second.start + 5..second.start + START_BYTES).contains(&at);
                let damage = read.damage(true);
                assert_eq!(damage.is_none(), in_seqno, "{at}");
                let lost = damage.is_some_and(|damage| damage.is_loss);
                let expected: &[&[u8]] = if lost { &[b"a", b"c"] } else { &[b"a", b"b", b"c"] };
                assert_eq!(found, expected, "{at} {mask}");
                // Only the items and their checksum cannot do without each other.
                let in_items = (second.start + START_BYTES..second.end - TRAILER.len()).contains(&at);
                assert_eq!(lost, in_items, "{at}");
            }
        }
    }

    #[test]
    fn a_batch_that_was_being_written_is_no_damage_at_the_end() {
        let (first, second) = (encoded(1, &[(b"a", b"1")]), encoded(2, &[(b"b", b"2")]));
        for length in 0..second.len() {
            let read = journal([first.as_slice(), &second[..length]].concat());
            assert!(read.damage(true).is_none(), "{length}");
            assert_eq!(read.damage(false).is_some(), length > 0, "{length}");
            assert_eq!(keys(&read), [b"a"]);
        }
    }

    #[test]
    fn a_damaged_last_batch_is_damage() {
        let (first, mut second) = (encoded(1, &[(b"a", b"1")]), encoded(2, &[(b"b", b"2")]));
        second[START_BYTES + 3] ^= 1;
        let damage = journal([first.as_slice(), &second].concat()).damage(true).expect("it is damaged");
        assert!(damage.is_loss && !damage.is_unsynced);
        assert_eq!((damage.at, damage.bytes), (first.len(), second.len()));
    }

    #[test]
    fn what_a_power_loss_leaves_is_told_apart() {
        let (first, third) = (encoded(1, &[(b"a", b"1")]), encoded(3, &[(b"c", b"3")]));
        let mut second = encoded(2, &[(b"b", &[7; 4_096])]);
        second[1_000..2_500].fill(0);
        let unsynced = journal([first.as_slice(), &second, &third].concat()).damage(true).expect("it is damaged");
        assert!(unsynced.is_unsynced);
        let synced = journal([first.as_slice(), &second, &third, &encoded(4, &[(b"d", b"4")])].concat());
        assert!(!synced.damage(true).expect("it is damaged").is_unsynced, "two batches later it had been synced");
    }

    #[test]
    fn a_value_that_imitates_batches_is_not_read_as_batches() {
        let forged = [encoded(2, &[(b"x", b"forged")]), encoded(3, &[(b"y", b"forged")])].concat();
        let (first, third) = (encoded(1, &[(b"a", b"1")]), encoded(3, &[(b"c", b"3")]));
        let mut second = encoded(2, &[(b"b", &forged)]);
        // The length of the key.
        second[START_BYTES + 11] ^= 0x40;
        let read = journal([first, second, third].concat());
        assert_eq!(keys(&read), [b"a", b"c"]);
    }
}
