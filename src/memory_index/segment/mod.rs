//! Segments: files of postings that never change.
//!
//! | bytes | |
//! |---|---|
//! | 64 | header: [`MAGIC`], versions of the format and of the analysis, entries, terms, words, where the parts begin, checksums |
//! | 40 each | entries in the order of agents and ids: agent, id, fingerprint of what was read |
//! | 1 each | how long each entry is, see [`length_of`] |
//! | .. | postings: for each term the entries that have it, as distances, and how often |
//! | 20 each | terms in the order of their hashes: hash, where its postings begin, how many entries have it |
//!
//! All numbers are little-endian. Only the lengths are kept in memory; all else is read when a search needs it.

mod merge;
mod postings;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

pub(crate) use merge::{DocReader, Memory, Source, merge};
pub(crate) use postings::{Postings, push};

use super::analysis;
use crate::kernel::disk;

/// What a segment begins with.
const MAGIC: [u8; 8] = *b"agsvcmix";
/// Grows when segments have another form.
const VERSION: u32 = 1;
/// Bytes of the header.
const HEADER_BYTES: u64 = 64;
/// Bytes of an entry.
const DOC_BYTES: u64 = 40;
/// Bytes of a term.
const TERM_BYTES: u64 = 20;
/// Terms that are read at once.
const BLOCK_TERMS: u64 = 64;
/// Bytes that are checked at once.
const CHUNK_BYTES: usize = 256 << 10;
/// Guesses of a term's place before the middle is tried.
const GUESSES: u32 = 4;

/// An entry's agent and id.
pub(crate) type Key = [u8; 32];

/// What a segment knows of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Doc {
    pub(crate) key: Key,
    /// Of what was read of the entry: another one means that the entry has changed since.
    pub(crate) fingerprint: u64,
}

impl Doc {
    fn to_bytes(self) -> [u8; DOC_BYTES as usize] {
        let mut bytes = [0; DOC_BYTES as usize];
        bytes[..32].copy_from_slice(&self.key);
        bytes[32..].copy_from_slice(&self.fingerprint.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; DOC_BYTES as usize]) -> Self {
        let (mut key, mut fingerprint) = ([0; 32], [0; 8]);
        key.copy_from_slice(&bytes[..32]);
        fingerprint.copy_from_slice(&bytes[32..]);
        Self { key, fingerprint: u64::from_le_bytes(fingerprint) }
    }
}

/// One term of a segment.
#[derive(Clone, Copy, Debug, Default)]
struct TermAt {
    hash: u64,
    /// From the beginning of the postings.
    offset: u64,
    count: u32,
}

impl TermAt {
    fn to_bytes(self) -> [u8; TERM_BYTES as usize] {
        let mut bytes = [0; TERM_BYTES as usize];
        bytes[..8].copy_from_slice(&self.hash.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..].copy_from_slice(&self.count.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        Self { hash: u64_at(bytes, 0), offset: u64_at(bytes, 8), count: u32_at(bytes, 16) }
    }
}

/// A term of a segment, and where its postings end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundTerm(TermAt, u64);

impl FoundTerm {
    /// How many entries have it.
    pub(crate) const fn count(&self) -> u32 {
        self.0.count
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

/// The header's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Header {
    docs: u32,
    terms: u64,
    words: u64,
    /// Bytes of all postings.
    postings: u64,
    /// Of all that follows the header.
    checksum: u64,
}

impl Header {
    fn to_bytes(self) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = [0; HEADER_BYTES as usize];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&analysis::VERSION.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.docs.to_le_bytes());
        for (at, number) in [(24, self.terms), (32, self.words), (40, self.postings), (48, self.checksum)] {
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let own = xxh3_64(&bytes[..56]);
        bytes[56..].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// `None` for one of another version, and for a damaged one.
    fn from_bytes(bytes: &[u8; HEADER_BYTES as usize]) -> Option<Self> {
        let versions = (u32_at(bytes, 8), u32_at(bytes, 12));
        let is_whole = bytes[..8] == MAGIC && u64_at(bytes, 56) == xxh3_64(&bytes[..56]);
        (is_whole && versions == (VERSION, analysis::VERSION)).then(|| Self {
            docs: u32_at(bytes, 16),
            terms: u64_at(bytes, 24),
            words: u64_at(bytes, 32),
            postings: u64_at(bytes, 40),
            checksum: u64_at(bytes, 48),
        })
    }

    const fn lengths_at(self) -> u64 {
        HEADER_BYTES + DOC_BYTES * self.docs as u64
    }

    const fn postings_at(self) -> u64 {
        self.lengths_at() + self.docs as u64
    }

    /// `None` when the numbers are nonsense.
    fn terms_at(self) -> Option<u64> {
        self.postings_at().checked_add(self.postings)
    }

    fn bytes(self) -> Option<u64> {
        self.terms_at()?.checked_add(self.terms.checked_mul(TERM_BYTES)?)
    }
}

/// How long a text of so many words is: exact for short ones, to within a tenth for others.
pub(crate) fn length_of(words: u32) -> u8 {
    let exact = 24;
    if words <= exact {
        return words as u8;
    }
    let grown = f64::from(exact) + (f64::from(words) / f64::from(exact)).ln() / 1.1_f64.ln();
    grown.min(255.0) as u8
}

/// The words that a length stands for.
pub(crate) fn words_of(length: u8) -> u32 {
    if length <= 24 { u32::from(length) } else { (24.0 * 1.1_f64.powi(i32::from(length) - 24)) as u32 }
}

/// A segment that is open.
#[derive(Debug)]
pub(crate) struct Segment {
    path: PathBuf,
    file: File,
    header: Header,
    lengths: Box<[u8]>,
}

impl Segment {
    /// Opens a segment and checks all of it; `None` when it is damaged or of another version.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = disk::open(path)?;
        let mut bytes = [0; HEADER_BYTES as usize];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let Some(header) = Header::from_bytes(&bytes) else { return Ok(None) };
        let size = file.metadata()?.len();
        if header.bytes() != Some(size) || checksum(&file, size)? != header.checksum {
            return Ok(None);
        }
        let mut lengths = vec![0; header.docs as usize].into_boxed_slice();
        file.read_exact_at(&mut lengths, header.lengths_at())?;
        Ok(Some(Self { path: path.to_owned(), file, header, lengths }))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Entries in it.
    pub(crate) const fn docs(&self) -> u32 {
        self.header.docs
    }

    /// Words of all entries.
    pub(crate) const fn words(&self) -> u64 {
        self.header.words
    }

    /// Bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.header.bytes().unwrap_or(0)
    }

    /// How long each entry is.
    pub(crate) fn lengths(&self) -> &[u8] {
        &self.lengths
    }

    /// One entry.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn doc(&self, number: u32) -> io::Result<Doc> {
        let mut bytes = [0; DOC_BYTES as usize];
        self.file.read_exact_at(&mut bytes, HEADER_BYTES + DOC_BYTES * u64::from(number))?;
        Ok(Doc::from_bytes(&bytes))
    }

    /// The number of the first entry with this key or a later one.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn first_from(&self, key: &Key) -> io::Result<u32> {
        let (mut low, mut high) = (0, self.header.docs);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.doc(middle)?.key < *key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// The postings of a term that was found.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn read(&self, FoundTerm(found, end): FoundTerm) -> io::Result<Vec<u8>> {
        // The checksum says that the places are right; a file that was changed since is not to cost memory.
        let bytes = end.checked_sub(found.offset).filter(|bytes| *bytes <= self.header.postings);
        let bytes = bytes.ok_or_else(changed)?;
        let mut postings = vec![0; bytes as usize];
        self.file.read_exact_at(&mut postings, self.header.postings_at() + found.offset)?;
        Ok(postings)
    }

    /// A term, and where its postings end, which are not read. The place of a hash among all is about what its value is among all values.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn find(&self, hash: u64) -> io::Result<Option<FoundTerm>> {
        let (mut low, mut high) = (0, self.header.terms);
        let (mut least, mut most) = (0, u64::MAX);
        let mut guesses = 0;
        while low < high {
            let span = high - low;
            let share = u128::from(hash - least) * u128::from(span) / (u128::from(most - least) + 1);
            let guess = if guesses < GUESSES { low + share as u64 } else { low + span / 2 };
            guesses += 1;
            let start = guess.saturating_sub(BLOCK_TERMS / 2).clamp(low, high - 1);
            // One more, for where the postings of the last end.
            let block = self.terms(start, (start + BLOCK_TERMS + 1).min(self.header.terms))?;
            let asked = block.len().min(BLOCK_TERMS as usize).min((high - start) as usize);
            let at = block[..asked].partition_point(|term| term.hash < hash);
            if block[..asked].get(at).is_some_and(|term| term.hash == hash) {
                let end = block.get(at + 1).map_or(self.header.postings, |next| next.offset);
                return Ok(Some(FoundTerm(block[at], end)));
            }
            if at == 0 {
                (high, most) = (start, block[0].hash);
            } else if at == asked {
                (low, least) = (start + asked as u64, block[asked - 1].hash);
            } else {
                return Ok(None);
            }
            if hash < least || hash > most {
                return Ok(None);
            }
        }
        Ok(None)
    }

    fn terms(&self, from: u64, to: u64) -> io::Result<Vec<TermAt>> {
        let mut bytes = vec![0; ((to - from) * TERM_BYTES) as usize];
        let terms_at = self.header.terms_at().unwrap_or(u64::MAX);
        self.file.read_exact_at(&mut bytes, terms_at + from * TERM_BYTES)?;
        Ok(bytes.chunks_exact(TERM_BYTES as usize).map(TermAt::from_bytes).collect())
    }
}

/// A file makes no sense any more that did when it was opened.
fn changed() -> io::Error {
    io::Error::other("a segment has changed on the disk")
}

/// Of all that follows the header.
fn checksum(file: &File, size: u64) -> io::Result<u64> {
    let (mut hasher, mut at) = (Xxh3::new(), HEADER_BYTES);
    let mut chunk = vec![0; CHUNK_BYTES];
    while at < size {
        let length = (size - at).min(CHUNK_BYTES as u64) as usize;
        file.read_exact_at(&mut chunk[..length], at)?;
        hasher.update(&chunk[..length]);
        at += length as u64;
    }
    Ok(hasher.digest())
}

#[cfg(test)]
mod tests;
