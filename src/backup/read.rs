//! Reads an archive that anybody may have made: nothing of it is trusted.
//!
//! What comes out of the compression is bounded by what the manifest says, by the ratio to what went in and by
//! [`BACKUP_BYTES_MAX`]. Entries are plain files with the names, order, sizes and checksums of the manifest, which comes
//! first; links, devices, directories and everything that follows are refused.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use agentsvc_components::kernel::limit::{
    BACKUP_MANIFEST_BYTES_MAX, BACKUP_NAME_BYTES_MAX, BACKUP_RATIO_FREE_BYTES, BACKUP_RATIO_MAX, BACKUP_WINDOW_LOG_MAX,
};
use agentsvc_systems::kernel::record::hex;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tar::{Archive, EntryType};

use super::error::{Error, io};
use super::manifest::{Entry, FORMAT, KIND, MANIFEST, Manifest};
use super::name::{check_entry, check_manifest};
use super::write::tar_bytes;
use crate::kernel::disk;

/// What a zstd stream begins with.
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();
/// Bytes that may follow the last entry: the end's empty blocks, and what other writers fill up with.
const END_BYTES_MAX: u64 = 1 << 20;
/// Bytes taken from a file at once.
const BUFFER_BYTES: usize = 256 << 10;

/// An entry that is being read.
pub(super) struct Reading<'a> {
    /// Its line of the manifest.
    pub(super) line: &'a Entry,
    /// Its owner may run it.
    pub(super) runs: bool,
    /// Its content, `line.size` bytes.
    pub(super) content: &'a mut dyn Read,
}

/// Reads the whole archive at `path`: first `begin` gets the manifest, then `each` every entry, which it must read to its
/// end. An error of either ends it.
pub(super) fn read(
    path: &Path,
    begin: impl FnOnce(&Manifest) -> Result<(), Error>,
    mut each: impl FnMut(Reading<'_>) -> Result<(), Error>,
) -> Result<Manifest, Error> {
    let watch = Watch::default();
    let mut archive = open(path, &watch)?;
    let mut entries = raw_entries(&mut archive, &watch)?;
    let manifest = read_manifest(&mut entries, &watch)?;
    check_manifest(&manifest)?;
    let expected = manifest.entries.iter().fold(0, |sum: u64, e| sum.saturating_add(tar_bytes(&e.name, e.size)));
    watch.allowed.set(watch.out.get().saturating_add(expected).saturating_add(END_BYTES_MAX));
    begin(&manifest)?;
    let mut lines = manifest.entries.iter();
    while let Some(mut found) = next(&mut entries, &watch, false)? {
        let line = lines.next().ok_or_else(|| Error::Damaged(format!("{:?} is not in its manifest", found.name)))?;
        if found.name != line.name {
            return Err(Error::Damaged(format!("{:?} is where {:?} should be", found.name, line.name)));
        }
        if found.size != line.size {
            let text = format!("{}: {} bytes; expected {}", line.name, found.size, line.size);
            return Err(Error::Damaged(text));
        }
        let mut content = Hashing { input: &mut found.entry, hash: Sha256::new(), bytes: 0 };
        each(Reading { line, runs: found.runs, content: &mut content }).map_err(|error| watch.fault_or(error))?;
        if content.bytes != line.size {
            return Err(watch.fault_or(Error::Damaged(format!("{} is truncated", line.name))));
        }
        if hex(&content.hash.finalize()) != line.sha256 {
            return Err(Error::Damaged(format!("{}: the checksum does not match", line.name)));
        }
    }
    if let Some(line) = lines.next() {
        return Err(Error::Damaged(format!("truncated before {:?}", line.name)));
    }
    let mut rest = archive.into_inner();
    let mut buffer = [0; 4 << 10];
    loop {
        match rest.read(&mut buffer) {
            Ok(0) => return Ok(manifest),
            Ok(read) if buffer[..read].iter().all(|byte| *byte == 0) => {}
            Ok(_) => return Err(Error::Damaged("data after the end".to_owned())),
            Err(error) => return Err(watch.of_io(error, false)),
        }
    }
}

/// Reads the manifest alone.
pub fn manifest_of(path: &Path) -> Result<Manifest, Error> {
    let watch = Watch::default();
    let mut archive = open(path, &watch)?;
    let mut entries = raw_entries(&mut archive, &watch)?;
    read_manifest(&mut entries, &watch)
}

/// What the layers of a reading share.
#[derive(Clone, Default)]
struct Watch {
    /// Compressed bytes taken so far.
    packed: Rc<Cell<u64>>,
    /// Bytes given so far.
    out: Rc<Cell<u64>>,
    /// Bytes that may be given.
    allowed: Rc<Cell<u64>>,
    /// What is wrong, where the layers in between would hide it.
    fault: Rc<RefCell<Option<Error>>>,
}

impl Watch {
    /// What an error of the layers means; `first` while nothing was read.
    fn of_io(&self, error: io::Error, first: bool) -> Error {
        let plain = || if first { Error::Foreign(format!("{error}")) } else { Error::Damaged(format!("{error}")) };
        self.fault.borrow_mut().take().unwrap_or_else(plain)
    }

    /// What was wrong below, else `error`.
    fn fault_or(&self, error: Error) -> Error {
        self.fault.borrow_mut().take().unwrap_or(error)
    }

    fn refuse(&self, error: Error) -> io::Error {
        let text = error.to_string();
        *self.fault.borrow_mut() = Some(error);
        io::Error::other(text)
    }
}

/// Counts what is taken from the file.
struct Packed {
    file: File,
    watch: Watch,
}

impl Read for Packed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.watch.packed.set(self.watch.packed.get() + read as u64);
        Ok(read)
    }
}

/// Gives what comes out of the compression, within its bounds.
struct Bounded {
    input: zstd::Decoder<'static, BufReader<Packed>>,
    watch: Watch,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        let out = self.watch.out.get() + read as u64;
        self.watch.out.set(out);
        let of_ratio = self.watch.packed.get().saturating_mul(BACKUP_RATIO_MAX).saturating_add(BACKUP_RATIO_FREE_BYTES);
        if out > of_ratio {
            let text = format!("it expands more than {BACKUP_RATIO_MAX} times when decompressed");
            return Err(self.watch.refuse(Error::TooLarge(text)));
        }
        if out > self.watch.allowed.get() {
            return Err(self.watch.refuse(Error::TooLarge("it contains more than its manifest lists".to_owned())));
        }
        Ok(read)
    }
}

fn open(path: &Path, watch: &Watch) -> Result<Archive<Bounded>, Error> {
    let mut file = disk::open(path).map_err(io("read", path))?;
    let mut magic = Vec::with_capacity(MAGIC.len());
    (&mut file).take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(io("read", path))?;
    if magic != MAGIC {
        return Err(Error::Foreign("it is not compressed with zstd".to_owned()));
    }
    io::Seek::rewind(&mut file).map_err(io("read", path))?;
    watch.allowed.set(BACKUP_MANIFEST_BYTES_MAX + END_BYTES_MAX);
    let packed = BufReader::with_capacity(BUFFER_BYTES, Packed { file, watch: watch.clone() });
    let mut input = zstd::Decoder::with_buffer(packed).map_err(|error| watch.of_io(error, true))?;
    input.window_log_max(BACKUP_WINDOW_LOG_MAX).map_err(|error| watch.of_io(error, true))?;
    Ok(Archive::new(Bounded { input, watch: watch.clone() }))
}

type Raw<'a> = tar::Entries<'a, Bounded>;

/// The entries as they stand there: tar's own ways of saying long names or other things are not followed.
fn raw_entries<'a>(archive: &'a mut Archive<Bounded>, watch: &Watch) -> Result<RawEntries<'a>, Error> {
    Ok(RawEntries(archive.entries().map_err(|error| watch.of_io(error, true))?.raw(true)))
}

/// See [`raw_entries`].
struct RawEntries<'a>(Raw<'a>);

/// A plain file in an archive.
struct FoundEntry<'a> {
    name: String,
    size: u64,
    runs: bool,
    entry: tar::Entry<'a, Bounded>,
}

/// The next file; `None` at the end.
fn next<'a>(entries: &mut RawEntries<'a>, watch: &Watch, first: bool) -> Result<Option<FoundEntry<'a>>, Error> {
    let Some(entry) = entries.0.next() else { return Ok(None) };
    let mut entry = entry.map_err(|error| watch.of_io(error, first))?;
    let mut long = None;
    if entry.header().entry_type() == EntryType::GNULongName {
        long = Some(long_name(&mut entry, watch)?);
        let Some(following) = entries.0.next() else {
            return Err(Error::Damaged("truncated in the middle of an entry".to_owned()));
        };
        entry = following.map_err(|error| watch.of_io(error, false))?;
    }
    let name = match long {
        Some(name) => name,
        None => String::from_utf8(entry.path_bytes().into_owned()).map_err(|error| Error::Unsafe {
            name: String::from_utf8_lossy(error.as_bytes()).into_owned(),
            reason: "has a name that is not UTF-8",
        })?,
    };
    let unsafe_entry = |reason| Error::Unsafe { name: name.clone(), reason };
    match entry.header().entry_type() {
        EntryType::Regular => {}
        EntryType::Directory => return Err(unsafe_entry("is a directory")),
        EntryType::Symlink | EntryType::Link => return Err(unsafe_entry("is a link")),
        EntryType::Char | EntryType::Block | EntryType::Fifo => return Err(unsafe_entry("is a device")),
        _ => return Err(unsafe_entry("is not a regular file")),
    }
    check_entry(&name).map_err(unsafe_entry)?;
    let size = entry.header().entry_size().map_err(|error| watch.of_io(error, first))?;
    let runs = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
    Ok(Some(FoundEntry { name, size, runs, entry }))
}

fn long_name(entry: &mut tar::Entry<'_, Bounded>, watch: &Watch) -> Result<String, Error> {
    let too_long = || Error::Unsafe { name: String::new(), reason: "has a name that is too long" };
    let mut name = Vec::new();
    entry.take(BACKUP_NAME_BYTES_MAX as u64 + 2).read_to_end(&mut name).map_err(|error| watch.of_io(error, false))?;
    if name.len() > BACKUP_NAME_BYTES_MAX + 1 {
        return Err(too_long());
    }
    name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
    String::from_utf8(name).map_err(|_| Error::Unsafe { name: String::new(), reason: "has a name that is not UTF-8" })
}

/// The two keys by which an archive is known, whatever else a later release puts beside them.
#[derive(Deserialize)]
struct Head {
    kind: String,
    format: u32,
}

fn read_manifest(entries: &mut RawEntries<'_>, watch: &Watch) -> Result<Manifest, Error> {
    let foreign = |text: &str| Error::Foreign(text.to_owned());
    let found = match next(entries, watch, true) {
        // Whatever another archive begins with, it is not dangerous but foreign.
        Err(Error::Unsafe { .. }) | Ok(None) => return Err(foreign("it does not start with a manifest")),
        found => found?,
    };
    let Some(mut found) = found.filter(|found| found.name == MANIFEST) else {
        return Err(foreign("it does not start with a manifest"));
    };
    if found.size > BACKUP_MANIFEST_BYTES_MAX {
        return Err(Error::TooLarge(format!("its manifest is longer than {BACKUP_MANIFEST_BYTES_MAX} bytes")));
    }
    let mut text = Vec::new();
    found.entry.read_to_end(&mut text).map_err(|error| watch.of_io(error, false))?;
    if text.len() as u64 != found.size {
        return Err(Error::Damaged("its manifest is truncated".to_owned()));
    }
    let unreadable = |error: serde_json::Error| Error::Foreign(format!("its manifest cannot be read: {error}"));
    let head: Head = serde_json::from_slice(&text).map_err(unreadable)?;
    if head.kind != KIND {
        return Err(foreign("its manifest belongs to another program"));
    }
    if head.format > FORMAT {
        return Err(Error::Newer { found: head.format, supported: FORMAT });
    }
    serde_json::from_slice(&text).map_err(unreadable)
}

/// Hashes and counts what is read.
struct Hashing<'a, R: Read> {
    input: &'a mut R,
    hash: Sha256,
    bytes: u64,
}

impl<R: Read> Read for Hashing<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
