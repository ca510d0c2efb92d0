//! The index: segments on the disk, and what is in none yet.
//!
//! It only ever proposes entries: a search reads the rows, and leaves out those that are gone, or that have another
//! fingerprint. So nothing is removed from a segment; what is gone is left out when segments are merged. For the same reason
//! there is no list of segments: all files in the folder are, and one that is damaged is deleted. What is no file was put there
//! by someone else: it is renamed.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use parking_lot::{RwLock, RwLockWriteGuard};
use uuid::Uuid;
use xxhash_rust::xxh3::Xxh3;

use super::rank::Query;
use super::search_parts::{self, Candidate, Within};
use super::segment::{Doc, Key, Segment, Source, merge};
use super::tail::{Analysed, Tail};

/// Entries of a tail that becomes a segment.
pub(super) const TAIL_DOCS: u32 = 16_384;
/// Full tails that wait to be written. More: no further entries are added before one is.
pub(super) const SEALED_MAX: usize = 3;
/// Entries that a merge reads before it writes the full tails that have come meanwhile.
const MERGED_DOCS: u32 = 1_024;
/// Segments of about the same size that become one.
const MERGED_SEGMENTS: usize = 8;
/// Entries of the smallest size.
const SMALL_DOCS: u32 = 2_048;
/// How much larger the next size is, as a power of two.
const SIZE_BITS: u32 = 3;
/// What files of segments end with.
const EXTENSION: &str = "segment";

/// What is renamed ends with this.
const MOVED: &str = "damaged";

/// Says whether the store has this entry as the index knows it.
pub(super) type IsThere<'a> = &'a mut dyn FnMut(&Doc) -> bool;

/// The index of one folder. One thread adds entries, another writes and merges segments; neither waits for the other, and
/// searches wait for none of them.
#[derive(Debug)]
pub(super) struct Index {
    dir: PathBuf,
    /// Held briefly only: no text is analysed and no disk is read meanwhile.
    pub(super) state: RwLock<State>,
    /// Of the state, for those who may not wait for it.
    docs: AtomicU64,
    bytes: AtomicU64,
    /// How often other rows took the place of those in the store.
    generation: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// The oldest first.
    pub(super) segments: Vec<Arc<Segment>>,
    /// Full tails that are not written yet, the oldest first.
    pub(super) sealed: Vec<Arc<Tail>>,
    pub(super) tail: Tail,
    /// Of the next segment's file.
    next: u64,
}

impl State {
    /// Gives the tail to those that are to be written.
    fn seal(&mut self) {
        if self.tail.docs() > 0 {
            self.sealed.push(Arc::new(std::mem::take(&mut self.tail)));
        }
    }
}

/// The disk is slower than entries come: this one was not added.
#[derive(Debug, thiserror::Error)]
#[error("entries come faster than the disk takes them")]
pub(super) struct Behind;

/// What the index holds at one moment.
pub(super) struct Snapshot {
    /// The segments.
    pub(super) segments: Vec<Arc<Segment>>,
    /// Entries that are in no segment.
    pub(super) unwritten: HashSet<Doc>,
}

impl Index {
    /// Of this folder, with nothing in it before it is [loaded](Self::load).
    pub(super) fn new(dir: PathBuf) -> Self {
        let [docs, bytes, generation] = [0; 3].map(AtomicU64::new);
        Self { dir, state: RwLock::default(), docs, bytes, generation }
    }

    /// Where its files are.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Opens what is in the folder; each segment is searched as soon as it is open. What is damaged, of another version or was
    /// not finished is deleted, and what is in the place of a file is renamed.
    ///
    /// # Errors
    /// The disk's. It may be loaded again.
    pub(super) fn load(&self) -> io::Result<()> {
        std::fs::create_dir_all(&self.dir)?;
        let mut numbers = Vec::new();
        for file in std::fs::read_dir(&self.dir)? {
            let file = file?;
            let path = file.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<u64>().ok());
            let extension = path.extension().unwrap_or_default();
            let (is_segment, is_moved) =
                (extension == EXTENSION, extension.as_encoded_bytes().starts_with(MOVED.as_bytes()));
            match stem {
                None => {}
                Some(_) if is_moved => {}
                // A FIFO would not open before another program opens it, and a directory cannot be read.
                Some(_) if !file.file_type()?.is_file() => move_away(&path)?,
                Some(number) if is_segment => numbers.push((number, path)),
                Some(_) => std::fs::remove_file(&path)?,
            }
        }
        numbers.sort_unstable();
        let next = numbers.last().map_or(0, |(number, _)| number + 1);
        self.change(|state| *state = State { next, ..State::default() });
        for (_, path) in numbers {
            match Segment::open(&path)? {
                Some(segment) => self.change(|state| state.segments.push(Arc::new(segment))),
                None => {
                    tracing::warn!(path = %path.display(), "a file of the memory index is not valid; it is built again");
                    std::fs::remove_file(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Changes the state, and counts what is there then.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.write();
        let changed = change(&mut state);
        let state = RwLockWriteGuard::downgrade(state);
        let of_segments: u64 = state.segments.iter().map(|segment| u64::from(segment.docs())).sum();
        let unwritten: u64 = state.sealed.iter().map(|tail| u64::from(tail.docs())).sum();
        self.docs.store(of_segments + unwritten + u64::from(state.tail.docs()), Ordering::Release);
        self.bytes.store(state.segments.iter().map(|segment| segment.bytes()).sum(), Ordering::Release);
        changed
    }

    /// Entries that match the query best. `most` bounds them.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn candidates(&self, query: &Query, within: &Within, most: usize) -> io::Result<Vec<Candidate>> {
        let state = self.state.read();
        let hashes = query.terms.iter().map(|(hash, _)| *hash).chain(within.must);
        let searched = State {
            segments: state.segments.clone(),
            sealed: state.sealed.clone(),
            tail: state.tail.excerpt(hashes),
            next: state.next,
        };
        drop(state);
        search_parts::candidates(&searched, query, within, most)
    }

    /// Entries that it knows of, those that are gone and several versions of one among them. Never blocks.
    pub(super) fn docs(&self) -> u64 {
        self.docs.load(Ordering::Acquire)
    }

    /// Bytes of its files. Never blocks.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// The segments as of now.
    pub(super) fn segments(&self) -> Vec<Arc<Segment>> {
        self.state.read().segments.clone()
    }

    /// What there is as of now.
    pub(super) fn snapshot(&self) -> Snapshot {
        let state = self.state.read();
        let tails = state.sealed.iter().map(|tail| &**tail).chain([&state.tail]);
        let unwritten = tails.flat_map(Tail::all).collect();
        Snapshot { segments: state.segments.clone(), unwritten }
    }

    /// Full tails that wait to be written.
    pub(super) fn sealed(&self) -> usize {
        self.state.read().sealed.len()
    }

    /// Adds some entries, which are found at once. A tail that is full is [to be written](Self::write_sealed).
    ///
    /// # Errors
    /// The disk takes none for so long that too many are in memory.
    pub(super) fn add<'d>(
        &self,
        docs: impl IntoIterator<Item = (Doc, &'d str, Option<&'d str>)>,
    ) -> Result<(), Behind> {
        for (doc, text, user) in docs {
            let analysed = Analysed::new(doc, text, user);
            self.change(|state| {
                if state.tail.docs() >= TAIL_DOCS {
                    if state.sealed.len() >= SEALED_MAX {
                        return Err(Behind);
                    }
                    state.seal();
                }
                state.tail.add(analysed);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Has the tail written, although it is not full. While too many wait to be written it stays, and grows.
    pub(super) fn seal(&self) {
        self.change(|state| {
            if state.sealed.len() < SEALED_MAX {
                state.seal();
            }
        });
    }

    /// Other rows are in the store than before: what is being written was compared with those of before, and is given up.
    pub(super) fn begin_generation(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Changes the state as [`change`](Self::change), and says so, if its generation is this one. Looks under the lock: a
    /// snapshot of a later generation has what was not changed.
    fn change_of(&self, generation: u64, change: impl FnOnce(&mut State)) -> bool {
        self.change(|state| {
            let is_present = self.generation() == generation;
            if is_present {
                change(state);
            }
            is_present
        })
    }

    /// Makes segments of the full tails, without the entries that are gone. Where that fails they stay, and are searched in
    /// memory.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn write_sealed(&self, is_there: IsThere<'_>) -> io::Result<()> {
        loop {
            let generation = self.generation();
            let Some(oldest) = self.state.read().sealed.first().cloned() else { return Ok(()) };
            let segment = self.write(&[Source::Memory(&oldest.to_memory())], is_there)?;
            let is_taken = self.change_of(generation, |state| {
                state.segments.extend(segment.clone());
                state.sealed.retain(|tail| !Arc::ptr_eq(tail, &oldest));
            });
            if !is_taken {
                give_up(segment.as_deref())?;
            }
        }
    }

    /// Merges segments where there are too many of one size. Full tails that come meanwhile are written in between.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn merge(&self, is_there: IsThere<'_>) -> io::Result<()> {
        while let Some(several) = self.of_one_size() {
            self.replace(&several, is_there)?;
        }
        Ok(())
    }

    /// Puts one segment in the place of some, without the entries that are gone; leaves them where other rows took the place of
    /// those that it was compared with.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn replace(&self, several: &[Arc<Segment>], is_there: IsThere<'_>) -> io::Result<()> {
        let sources: Vec<Source<'_>> = several.iter().map(|segment| Source::Segment(segment)).collect();
        let (generation, mut seen) = (self.generation(), 0_u32);
        let segment = self.write(&sources, &mut |doc| {
            seen += 1;
            if seen.is_multiple_of(MERGED_DOCS)
                && let Err(error) = self.write_sealed(&mut |_| true)
            {
                tracing::debug!(%error, "entries stay in memory during a merge");
            }
            is_there(doc)
        })?;
        let old: HashSet<&Path> = several.iter().map(|segment| segment.path()).collect();
        let is_taken = self.change_of(generation, |state| {
            state.segments.retain(|segment| !old.contains(segment.path()));
            state.segments.extend(segment.clone());
        });
        if !is_taken {
            return give_up(segment.as_deref());
        }
        // Who searches them at this moment has them open.
        old.into_iter().try_for_each(std::fs::remove_file)
    }

    fn write(&self, sources: &[Source<'_>], is_there: IsThere<'_>) -> io::Result<Option<Arc<Segment>>> {
        let number = {
            let mut state = self.state.write();
            state.next += 1;
            state.next - 1
        };
        let path = self.dir.join(format!("{number:010}.{EXTENSION}"));
        if !merge(&path, sources, is_there)? {
            return Ok(None);
        }
        let opened = Segment::open(&path)?.ok_or_else(|| io::Error::other("a new segment cannot be read"))?;
        Ok(Some(Arc::new(opened)))
    }

    /// Segments of about the same size, when there are enough of them.
    fn of_one_size(&self) -> Option<Vec<Arc<Segment>>> {
        let mut sizes: Vec<Vec<Arc<Segment>>> = Vec::new();
        for segment in &self.state.read().segments {
            let size = size_of(segment.docs());
            sizes.resize_with(sizes.len().max(size + 1), Vec::new);
            sizes[size].push(Arc::clone(segment));
        }
        sizes.into_iter().find(|several| several.len() >= MERGED_SEGMENTS)
    }
}

/// Deletes a segment that is not needed.
fn give_up(segment: Option<&Segment>) -> io::Result<()> {
    segment.map_or(Ok(()), |segment| std::fs::remove_file(segment.path()))
}

/// Gives what is no file a name that no file of the index has.
fn move_away(path: &Path) -> io::Result<()> {
    let free = (0_u64..).map(|number| match number {
        0 => path.with_added_extension(MOVED),
        _ => path.with_added_extension(format!("{MOVED}-{number}")),
    });
    // What dangles is there, too.
    let Some(to) = free.into_iter().find(|to| to.symlink_metadata().is_err()) else { return Ok(()) };
    tracing::warn!(path = %path.display(), to = %to.display(), "what is in the place of a file of the memory index is renamed");
    std::fs::rename(path, to)
}

/// The size of a segment with so many entries, 0 for the smallest.
fn size_of(docs: u32) -> usize {
    (docs / SMALL_DOCS).checked_ilog2().map_or(0, |log| 1 + log / SIZE_BITS) as usize
}

/// The key of an entry.
pub(super) fn key_of(agent: &[u8; 16], id: &[u8; 16]) -> Key {
    let mut key = [0; 32];
    key[..16].copy_from_slice(agent);
    key[16..].copy_from_slice(id);
    key
}

/// The agent and the id of a key.
pub(super) fn ids_of(key: &Key) -> (AgentId, MemoryEntryId) {
    let half = |from: usize| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&key[from..from + 16]);
        Uuid::from_bytes(bytes)
    };
    (AgentId(half(0)), MemoryEntryId(half(16)))
}

/// Of what is read of an entry.
pub(super) fn fingerprint(record: &MemoryEntryRecord) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(record.content.as_bytes());
    if let Some(user) = &record.user {
        hasher.update(&[0]);
        hasher.update(user.as_bytes());
    }
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doc(number: u8) -> Doc {
        Doc { key: [number; 32], fingerprint: 1 }
    }

    #[test]
    fn what_was_compared_with_rows_of_before_replaces_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let index = Index::new(dir.path().to_owned());
        index.load().unwrap();
        for number in 0..2 {
            index.add([(doc(number), "a zebra", None)]).unwrap();
            index.seal();
            index.write_sealed(&mut |_| true).unwrap();
        }
        let segments = index.segments();
        let mut restored = |_: &Doc| {
            index.begin_generation();
            false
        };
        index.replace(&segments, &mut restored).unwrap();
        assert_eq!((index.docs(), index.segments().len()), (2, 2));
        index.replace(&segments, &mut |doc| doc.key == [0; 32]).unwrap();
        assert_eq!((index.docs(), index.segments().len()), (1, 1));
        index.add([(doc(2), "a zebra", None)]).unwrap();
        index.seal();
        let mut asked = 0;
        let mut restored = |_: &Doc| {
            asked += 1;
            if asked == 1 {
                index.begin_generation();
            }
            asked > 1
        };
        index.write_sealed(&mut restored).unwrap();
        assert_eq!((index.docs(), index.sealed()), (2, 0), "it is compared again with the rows of now");
    }

    #[test]
    fn no_more_tails_are_sealed_than_may_wait() {
        let index = Index::new(PathBuf::new());
        for number in 0..9 {
            index.add([(doc(number), "a zebra", None)]).unwrap();
            index.seal();
        }
        assert_eq!((index.sealed(), index.docs()), (SEALED_MAX, 9));
    }
}
