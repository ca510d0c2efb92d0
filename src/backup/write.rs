//! Writes an archive: tar in zstd, the manifest first.
//!
//! The manifest names the sizes and checksums of all entries, and stands before them. So the entries are compressed into
//! a file of their own, and the archive is made of the manifest's zstd frame and that file behind it: frames that follow
//! each other are one stream. Nothing is ever held in memory whole.
//!
//! A stream that shrinks more than [`BACKUP_RATIO_MAX`] would be taken for a bomb; such a one gets a frame between the two
//! that readers skip, as long as it takes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use agentsvc_components::kernel::limit::{
    BACKUP_BYTES_MAX, BACKUP_ENTRIES_MAX, BACKUP_MANIFEST_BYTES_MAX, BACKUP_RATIO_FREE_BYTES, BACKUP_RATIO_MAX,
};
use agentsvc_systems::kernel::record::hex;
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

use super::error::{Error, io};
use super::manifest::{Entry, MANIFEST, Manifest};
use super::name::check_manifest;
use super::place::sync_dir;
use crate::kernel::free_space;
use crate::kernel::free_space::Sparing;
use crate::kernel::home::private_file;

/// Bytes of a tar block.
pub(super) const BLOCK_BYTES: u64 = 512;
/// The name under which tar announces a long name.
const LONG_LINK: &str = "././@LongLink";
/// How hard zstd tries; higher levels cost more than they give on rows.
const LEVEL: i32 = 3;
/// What a frame begins with that readers skip; its length follows, little-endian.
const SKIPPED_FRAME: [u8; 4] = 0x184D_2A50_u32.to_le_bytes();
/// Bytes of the manifest that each entry may take. One with a longer line counts as several, so that a manifest of as many
/// entries as there may be can be read again.
const LINE_BYTES: usize = BACKUP_MANIFEST_BYTES_MAX as usize / BACKUP_ENTRIES_MAX;
/// Bytes of an entry's line beside its name.
const LINE_AROUND_BYTES: usize = 160;
/// Entries that files of agents leave to what comes behind them: the rows of agents, and the manifest's own texts.
pub(super) const RESERVED_ENTRIES: usize = 1_000;
/// Bytes that files of agents leave to the rows of agents.
const RESERVED_BYTES: u64 = BACKUP_BYTES_MAX / 4;

/// What the name of a file on its way ends with.
const FRESH: &str = "new";
/// What the name of the entries' file ends with.
const BODY: &str = "body";
/// What the name of the copy of a long file ends with.
const SPOOL: &str = "copy";

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file.
    File,
    /// A file that its owner may run.
    Program,
    /// A rows file with so many rows.
    Rows(u64),
}

/// An archive that is being written. Dropped before [`finish`](Self::finish), nothing of it stays.
pub(super) struct ArchiveWriter {
    /// Where it will be.
    path: PathBuf,
    files: Leftovers,
    body: zstd::Encoder<'static, Sparing<File>>,
    entries: Vec<Entry>,
    /// As how many they count.
    counted: usize,
    /// Bytes of all entries.
    bytes: u64,
    /// The same with what tar puts around them.
    tar_bytes: u64,
}

/// The files beside the archive; removed when they are not needed any more.
struct Leftovers {
    body: PathBuf,
    fresh: PathBuf,
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        for path in [&self.body, &self.fresh] {
            // The next backup removes what stays.
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes what kills have left of archives on their way. Not while one is being written.
pub(super) fn remove_leftovers(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let is_ours = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with(super::name::ENDING));
        if is_ours && path.extension().is_some_and(|ending| [FRESH, BODY, SPOOL].iter().any(|ours| ending == *ours)) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Where a long file is copied to before it goes into the archive at `path`.
pub(super) fn spool_of(path: &Path) -> PathBuf {
    with_ending(path, SPOOL)
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

impl ArchiveWriter {
    /// Begins the archive at `path`, in a directory that is there.
    pub(super) fn begin(path: &Path) -> Result<Self, Error> {
        let files = Leftovers { body: with_ending(path, BODY), fresh: with_ending(path, FRESH) };
        let mut options = private_file();
        let file = options.read(true).write(true).create(true).truncate(true).open(&files.body);
        let file = file.map_err(io("create", &files.body))?;
        let file = Sparing::new(file, &files.body).map_err(io("write", &files.body))?;
        let body = zstd::Encoder::new(file, LEVEL).map_err(io("compress", &files.body))?;
        Ok(Self { path: path.to_owned(), files, body, entries: Vec::new(), counted: 0, bytes: 0, tar_bytes: 0 })
    }

    /// What was packed so far.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Is there room for a file of an agent, of which the rest of the backup can do without?
    pub(super) fn takes(&self, name: &str, size: u64) -> bool {
        self.counted + counted(name) + RESERVED_ENTRIES <= BACKUP_ENTRIES_MAX
            && self.bytes.saturating_add(size).saturating_add(RESERVED_BYTES) <= BACKUP_BYTES_MAX
    }

    /// Adds an entry of `size` bytes, which `fill` writes.
    ///
    /// # Errors
    /// [`Error::TooLarge`], the errors of `fill`, or the disk failed. The archive is of no use then.
    pub(super) fn entry(
        &mut self,
        name: &str,
        size: u64,
        kind: Kind,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add(size);
        self.counted += counted(name);
        if self.counted > BACKUP_ENTRIES_MAX {
            let text = format!(
                "more than {BACKUP_ENTRIES_MAX} files; set `[backup] workspaces = false` to skip the agents' files"
            );
            return Err(Error::TooLarge(text));
        }
        if self.bytes > BACKUP_BYTES_MAX {
            return Err(Error::TooLarge(format!("more than {BACKUP_BYTES_MAX} bytes")));
        }
        self.tar_bytes = self.tar_bytes.saturating_add(tar_bytes(name, size));
        let failed = |source| Error::Io { what: "write", path: self.files.body.clone(), source };
        write_header(&mut self.body, name, size, kind == Kind::Program).map_err(failed)?;
        let mut content = Content { out: &mut self.body, hash: Sha256::new(), left: size };
        fill(&mut content)?;
        let Content { hash, left, .. } = content;
        if left > 0 {
            let short = io::Error::new(io::ErrorKind::UnexpectedEof, format!("{name} shrank while it was read"));
            return Err(failed(short));
        }
        pad(&mut self.body, size).map_err(failed)?;
        let rows = if let Kind::Rows(rows) = kind { Some(rows) } else { None };
        self.entries.push(Entry { name: name.to_owned(), size, sha256: hex(&hash.finalize()), rows });
        Ok(())
    }

    /// Puts the manifest before the entries and the archive in its place: whole and durable, or not at all. Gives its size.
    pub(super) fn finish(self, mut manifest: Manifest) -> Result<(Manifest, u64), Error> {
        let Self { path, files, mut body, entries, tar_bytes, .. } = self;
        manifest.entries = entries;
        manifest.sum_up();
        // What could not be read again is no backup.
        check_manifest(&manifest)?;
        let on_body = |source| Error::Io { what: "write", path: files.body.clone(), source };
        // Two empty blocks are the end.
        body.write_all(&[0; 2 * BLOCK_BYTES as usize]).map_err(on_body)?;
        let mut body = body.finish().map_err(on_body)?.into_inner();
        let on_fresh = |source| Error::Io { what: "write", path: files.fresh.clone(), source };
        let text = serde_json::to_vec(&manifest).map_err(|error| on_fresh(error.into()))?;
        let mut file = private_file()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&files.fresh)
            .map_err(io("create", &files.fresh))?;
        let mut head = zstd::Encoder::new(&mut file, LEVEL).map_err(on_fresh)?;
        let size = text.len() as u64;
        write_header(&mut head, MANIFEST, size, false)
            .and_then(|()| head.write_all(&text))
            .and_then(|()| pad(&mut head, size))
            .and_then(|()| head.finish().map(drop))
            .map_err(on_fresh)?;
        let packed = body.metadata().map_err(on_body)?.len();
        free_space::check(&files.fresh, packed).map_err(on_fresh)?;
        pad_ratio(&mut file, tar_bytes, packed).map_err(on_fresh)?;
        io::Seek::rewind(&mut body).map_err(on_body)?;
        io::copy(&mut body, &mut file).map_err(on_fresh)?;
        file.sync_all().map_err(on_fresh)?;
        let size = file.metadata().map_err(on_fresh)?.len();
        fs::rename(&files.fresh, &path).map_err(io("write", &path))?;
        sync_dir(path.parent().unwrap_or(Path::new(".")))?;
        Ok((manifest, size))
    }
}

/// As how many entries one of this name counts: 1, and more when its line in the manifest is long.
pub(super) fn counted(name: &str) -> usize {
    let name_bytes = serde_json::to_string(name).map_or(0, |text| text.len());
    (LINE_AROUND_BYTES + name_bytes).div_ceil(LINE_BYTES)
}

/// Writes a header, and before it the name when it is too long for one.
pub(super) fn write_header(out: &mut impl Write, name: &str, size: u64, runs: bool) -> io::Result<()> {
    let header = |size, kind| {
        let mut header = Header::new_gnu();
        header.set_size(size);
        header.set_mode(if runs { 0o700 } else { 0o600 });
        header.set_entry_type(kind);
        header
    };
    let mut plain = header(size, EntryType::Regular);
    if plain.set_path(name).is_err() {
        let mut long = header(name.len() as u64 + 1, EntryType::GNULongName);
        let field = &mut long.as_gnu_mut().ok_or(io::ErrorKind::InvalidInput)?.name;
        field[..LONG_LINK.len()].copy_from_slice(LONG_LINK.as_bytes());
        long.set_cksum();
        out.write_all(long.as_bytes())?;
        out.write_all(name.as_bytes())?;
        out.write_all(&[0])?;
        pad(out, name.len() as u64 + 1)?;
        // Readers take the long name; this is for those that do not know of it.
        let field = &mut plain.as_gnu_mut().ok_or(io::ErrorKind::InvalidInput)?.name;
        let taken = name.floor_char_boundary(field.len() - 1);
        field[..taken].copy_from_slice(&name.as_bytes()[..taken]);
    }
    plain.set_cksum();
    out.write_all(plain.as_bytes())
}

/// Bytes that an entry takes in a tar, at most.
pub(super) fn tar_bytes(name: &str, size: u64) -> u64 {
    let around =
        if name.len() > 99 { 3 * BLOCK_BYTES + (name.len() as u64).next_multiple_of(BLOCK_BYTES) } else { BLOCK_BYTES };
    size.saturating_add(BLOCK_BYTES + around)
}

/// Fills the last block of an entry of `size` bytes.
pub(super) fn pad(out: &mut impl Write, size: u64) -> io::Result<()> {
    let over = (size % BLOCK_BYTES) as usize;
    if over == 0 { Ok(()) } else { out.write_all(&[0; BLOCK_BYTES as usize][over..]) }
}

/// Adds a frame that readers skip when `packed` bytes become more than the ratio allows.
fn pad_ratio(out: &mut File, bytes: u64, packed: u64) -> io::Result<()> {
    let needed = bytes.saturating_sub(BACKUP_RATIO_FREE_BYTES / 2).div_ceil(BACKUP_RATIO_MAX);
    let Some(missing) = needed.checked_sub(packed).filter(|missing| *missing > 0) else { return Ok(()) };
    let length = u32::try_from(missing).unwrap_or(u32::MAX);
    out.write_all(&SKIPPED_FRAME)?;
    out.write_all(&length.to_le_bytes())?;
    io::copy(&mut io::Read::take(io::repeat(0), u64::from(length)), out).map(drop)
}

/// The content of an entry: hashed, and no longer than its header says.
struct Content<'a, W: Write> {
    out: &'a mut W,
    hash: Sha256,
    left: u64,
}

impl<W: Write> Write for Content<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an entry grew while it was read"));
        }
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.left -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kill_leaves_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("agentsvc-20261122T100000Z.tar.zst");
        let notes = dir.path().join("notes.copy");
        let leftovers = [with_ending(&archive, FRESH), with_ending(&archive, BODY), spool_of(&archive)];
        for path in leftovers.iter().chain([&archive, &notes]) {
            fs::write(path, "x").unwrap();
        }
        remove_leftovers(dir.path()).unwrap();
        assert!(archive.exists() && notes.exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
