//! Writes a segment: of entries that are in memory, or of several segments.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use super::postings::{Postings, push};
use super::{DOC_BYTES, Doc, HEADER_BYTES, Header, Segment, TermAt, words_of};

/// Bytes that are read at once.
const PART_BYTES: usize = 64 << 10;
/// Terms that are read at once.
const CHUNK_TERMS: u64 = 4_096;
/// Stands for an entry that is left out.
const DROPPED: u32 = u32::MAX;

/// Entries that are in memory, in the order of their keys, each key once.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// With how long each is.
    pub(crate) docs: Vec<(Doc, u8)>,
    /// By hash: how many entries, and the postings.
    pub(crate) terms: Vec<(u64, u32, Vec<u8>)>,
}

/// What a segment is made of.
pub(crate) enum Source<'s> {
    /// Another segment.
    Segment(&'s Segment),
    /// Entries in memory.
    Memory(&'s Memory),
}

/// Writes the segment at `path` and makes it durable. Of several entries with one key the one of the latest source is written;
/// `keep` may leave entries out. Gives false, and leaves no file, when there is nothing to write.
///
/// # Errors
/// The disk's.
pub(crate) fn merge(path: &Path, sources: &[Source<'_>], keep: &mut dyn FnMut(&Doc) -> bool) -> io::Result<bool> {
    let part = path.with_extension("part");
    let written = write(&part, sources, keep);
    match written {
        Ok(true) => std::fs::rename(&part, path)?,
        _ => drop(std::fs::remove_file(&part)),
    }
    written
}

fn write(path: &Path, sources: &[Source<'_>], keep: &mut dyn FnMut(&Doc) -> bool) -> io::Result<bool> {
    let mut out = Out { file: BufWriter::new(File::create(path)?), hasher: Xxh3::new() };
    out.file.write_all(&[0; HEADER_BYTES as usize])?;
    let (numbers, lengths) = docs(sources, keep, &mut out)?;
    if lengths.is_empty() {
        return Ok(false);
    }
    out.write(&lengths)?;
    let mut header = Header { docs: lengths.len() as u32, ..Header::default() };
    header.words = lengths.iter().map(|length| u64::from(words_of(*length))).sum();
    let mut terms = Vec::new();
    header.postings = postings(sources, &numbers, &mut terms, &mut out)?;
    header.terms = terms.len() as u64;
    for term in terms {
        out.write(&term.to_bytes())?;
    }
    header.checksum = out.hasher.digest();
    let mut file = out.file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header.to_bytes())?;
    file.sync_all()?;
    Ok(true)
}

/// The file, and the checksum of what was written.
struct Out {
    file: BufWriter<File>,
    hasher: Xxh3,
}

impl Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.file.write_all(bytes)
    }
}

/// Writes the entries. Gives for each source the new number of each of its entries, and all lengths.
fn docs(
    sources: &[Source<'_>],
    keep: &mut dyn FnMut(&Doc) -> bool,
    out: &mut Out,
) -> io::Result<(Vec<Vec<u32>>, Vec<u8>)> {
    let mut readers: Vec<DocReader<'_>> = sources.iter().map(DocReader::new).collect::<io::Result<_>>()?;
    let (mut numbers, mut lengths) = (vec![Vec::new(); sources.len()], Vec::new());
    while let Some(key) = readers.iter().filter_map(|reader| reader.next.map(|(doc, _)| doc.key)).min() {
        let mut written = false;
        // The latest source first.
        for (source, reader) in readers.iter_mut().enumerate().rev() {
            let Some((doc, length)) = reader.next.filter(|(doc, _)| doc.key == key) else { continue };
            if !written && keep(&doc) {
                written = true;
                numbers[source].push(lengths.len() as u32);
                lengths.push(length);
                out.write(&doc.to_bytes())?;
            } else {
                numbers[source].push(DROPPED);
            }
            reader.advance()?;
        }
    }
    Ok((numbers, lengths))
}

/// Reads a part of a file from its beginning to its end, with a position of its own.
struct Part<'s> {
    file: &'s File,
    at: u64,
    end: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(usize::try_from(self.end - self.at).unwrap_or(usize::MAX));
        let read = self.file.read_at(&mut into[..most], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

fn part(segment: &Segment, at: u64, bytes: u64) -> BufReader<Part<'_>> {
    BufReader::with_capacity(PART_BYTES, Part { file: &segment.file, at, end: at + bytes })
}

/// Reads the entries of a source one by one.
pub(crate) struct DocReader<'s> {
    /// The one that stands next, and how long it is.
    pub(crate) next: Option<(Doc, u8)>,
    rest: DocRest<'s>,
}

enum DocRest<'s> {
    Segment(BufReader<Part<'s>>, std::slice::Iter<'s, u8>),
    Memory(std::slice::Iter<'s, (Doc, u8)>),
}

impl<'s> DocReader<'s> {
    /// Stands before the first.
    pub(crate) fn new(source: &Source<'s>) -> io::Result<Self> {
        let rest = match source {
            Source::Segment(segment) => {
                let docs = part(segment, HEADER_BYTES, DOC_BYTES * u64::from(segment.docs()));
                DocRest::Segment(docs, segment.lengths.iter())
            }
            Source::Memory(memory) => DocRest::Memory(memory.docs.iter()),
        };
        let mut reader = Self { next: None, rest };
        reader.advance()?;
        Ok(reader)
    }

    /// Goes on to the next one.
    pub(crate) fn advance(&mut self) -> io::Result<()> {
        self.next = match &mut self.rest {
            DocRest::Segment(docs, lengths) => match lengths.next() {
                Some(length) => {
                    let mut bytes = [0; DOC_BYTES as usize];
                    docs.read_exact(&mut bytes)?;
                    Some((Doc::from_bytes(&bytes), *length))
                }
                None => None,
            },
            DocRest::Memory(docs) => docs.next().copied(),
        };
        Ok(())
    }
}

/// Writes the postings of all terms. Gives their bytes.
fn postings(sources: &[Source<'_>], numbers: &[Vec<u32>], terms: &mut Vec<TermAt>, out: &mut Out) -> io::Result<u64> {
    let mut readers: Vec<TermReader<'_>> = sources.iter().map(TermReader::new).collect::<io::Result<_>>()?;
    let (mut offset, mut list, mut bytes) = (0, Vec::new(), Vec::new());
    while let Some(hash) = readers.iter().filter_map(|reader| reader.next.map(|term| term.hash)).min() {
        list.clear();
        for (reader, numbers) in readers.iter_mut().zip(numbers) {
            if reader.next.is_some_and(|term| term.hash == hash) {
                let read = reader.postings()?;
                let kept = Postings::new(&read).filter_map(|(doc, times)| {
                    let number = *numbers.get(doc as usize)?;
                    (number != DROPPED).then_some((number, times))
                });
                list.extend(kept);
                reader.advance()?;
            }
        }
        if list.is_empty() {
            continue;
        }
        list.sort_unstable();
        bytes.clear();
        let mut before = None;
        for (number, times) in &list {
            push(&mut bytes, before, *number, *times);
            before = Some(*number);
        }
        out.write(&bytes)?;
        terms.push(TermAt { hash, offset, count: list.len() as u32 });
        offset += bytes.len() as u64;
    }
    Ok(offset)
}

/// Reads the terms of a source one by one.
struct TermReader<'s> {
    next: Option<TermAt>,
    rest: TermRest<'s>,
}

enum TermRest<'s> {
    Segment { segment: &'s Segment, block: Vec<TermAt>, at: usize, read: u64, postings: BufReader<Part<'s>> },
    Memory { memory: &'s Memory, at: usize },
}

impl<'s> TermReader<'s> {
    fn new(source: &Source<'s>) -> io::Result<Self> {
        let rest = match source {
            Source::Segment(segment) => {
                let postings = part(segment, segment.header.postings_at(), segment.header.postings);
                TermRest::Segment { segment, block: Vec::new(), at: 0, read: 0, postings }
            }
            Source::Memory(memory) => TermRest::Memory { memory, at: 0 },
        };
        let mut reader = Self { next: None, rest };
        reader.advance()?;
        Ok(reader)
    }

    fn advance(&mut self) -> io::Result<()> {
        self.next = match &mut self.rest {
            TermRest::Segment { segment, block, at, read, .. } => {
                *at += 1;
                if *at >= block.len() {
                    let end = (*read + CHUNK_TERMS).min(segment.header.terms);
                    *block = segment.terms(*read, end)?;
                    (*at, *read) = (0, end);
                }
                block.get(*at).copied()
            }
            TermRest::Memory { memory, at } => {
                *at += 1;
                memory.terms.get(*at - 1).map(|(hash, count, _)| TermAt { hash: *hash, offset: 0, count: *count })
            }
        };
        Ok(())
    }

    /// Those of the term that stands next. To be called once for each term, in their order.
    fn postings(&mut self) -> io::Result<Vec<u8>> {
        let (segment, block, at, read, postings) = match &mut self.rest {
            TermRest::Segment { segment, block, at, read, postings } => (segment, block, *at, *read, postings),
            TermRest::Memory { memory, at } => return Ok(memory.terms[*at - 1].2.clone()),
        };
        let next = match block.get(at + 1) {
            Some(next) => Some(next.offset),
            None if read < segment.header.terms => segment.terms(read, read + 1)?.first().map(|next| next.offset),
            None => None,
        };
        let end = next.unwrap_or(segment.header.postings);
        let bytes = end.checked_sub(block[at].offset).filter(|bytes| *bytes <= segment.header.postings);
        let mut read = vec![0; bytes.ok_or_else(super::changed)? as usize];
        postings.read_exact(&mut read)?;
        Ok(read)
    }
}
