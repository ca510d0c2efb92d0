//! Zip and tar.gz archives that anybody may have made, unpacked within bounds.
//!
//! A path that leads out of the folder refuses the whole archive. Links, special files and paths that a skill may not have are
//! left out and remembered: an archive of a repository may have them beside the skill, the skill itself may not.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};

use flate2::bufread::MultiGzDecoder;
use tar::EntryType;
use zip::ZipArchive;

use super::entry;
use super::folders::FolderError;
use super::staging::{FILES_MAX, SKILL_BYTES_MAX, Staging};

/// How many times more bytes than the archive has may come out of it.
const RATIO_MAX: u64 = 100;
/// Bytes that may come out of any archive.
const RATIO_FREE_BYTES: u64 = 1 << 20;
/// Entries of an archive, directories and what is left out included.
const ENTRIES_MAX: usize = 4 * FILES_MAX;
/// Bytes of a header that has a long name in it.
const HEADER_BYTES_MAX: u64 = 64 << 10;
/// Bytes at the end of a zip archive in which its directory is looked for.
const ZIP_END_BYTES: u64 = (64 << 10) + 64;
/// What stands before the end of a zip64 archive.
const ZIP64_LOCATOR: &[u8] = b"PK\x06\x07";
/// Paths that are left out and remembered.
const LEFT_OUT_MAX: usize = 1_000;
/// The bits of a mode that say what a file is.
const KIND: u32 = 0o170_000;
/// Those of a regular file.
const REGULAR: u32 = 0o100_000;
/// The bit of a mode that lets the owner run a file.
const OWNER_RUNS: u32 = 0o100;

/// A path that was not unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// The path.
    pub(super) path: String,
    /// Why, as a sentence that names it.
    pub(super) why: String,
}

/// What an archive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// A zip archive.
    Zip,
    /// A tar archive, compressed with gzip.
    TarGz,
    /// A tar archive.
    Tar,
}

/// Looks at the first bytes; `None` for what is no archive.
///
/// # Errors
/// The disk's.
pub(super) fn format_of(file: &mut File) -> io::Result<Option<Format>> {
    let mut head = Vec::new();
    file.rewind()?;
    file.by_ref().take(512).read_to_end(&mut head)?;
    file.rewind()?;
    Ok(match head.as_slice() {
        [b'P', b'K', 3 | 5, 4 | 6, ..] => Some(Format::Zip),
        [0x1f, 0x8b, ..] => Some(Format::TarGz),
        head if head.get(257..262) == Some(b"ustar") => Some(Format::Tar),
        _ => None,
    })
}

/// Unpacks an archive into the staging folder. Gives what was left out.
///
/// # Errors
/// [`FolderError::Refused`] for a path out of the folder, [`FolderError::Unreadable`], [`FolderError::TooLarge`] for more than a
/// hundred times the archive's bytes or more than a skill may have, and those of [`Staging::write`].
pub(super) fn unpack(mut file: File, format: Format, into: &mut Staging) -> Result<Vec<LeftOut>, FolderError> {
    let packed = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    let bytes_max = packed.saturating_mul(RATIO_MAX).saturating_add(RATIO_FREE_BYTES).min(SKILL_BYTES_MAX);
    into.bound(bytes_max);
    let mut unpacking = Unpacking { into, left_out: Vec::new(), entries: 0 };
    match format {
        Format::Zip => unpacking.zip(file)?,
        // The blocks of a tar archive that are no content.
        Format::TarGz => {
            unpacking.tar(Bounded::new(MultiGzDecoder::new(BufReader::new(file)), bytes_max.saturating_mul(2)))?
        }
        Format::Tar => unpacking.tar(Bounded::new(BufReader::new(file), SKILL_BYTES_MAX))?,
    }
    Ok(unpacking.left_out)
}

struct Unpacking<'a> {
    into: &'a mut Staging,
    left_out: Vec<LeftOut>,
    entries: usize,
}

/// What an entry of an archive is.
enum Kind {
    File { runs: bool },
    Link,
    Special,
}

impl Unpacking<'_> {
    fn zip(&mut self, mut file: File) -> Result<(), FolderError> {
        let unreadable =
            |error: zip::result::ZipError| FolderError::Unreadable(format!("the zip archive is damaged: {error}"));
        refuse_zip64(&mut file)?;
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(unreadable)?;
        if archive.len() > ENTRIES_MAX {
            return Err(too_many());
        }
        if archive.has_duplicate_names() {
            return Err(FolderError::Refused("the zip archive has two files of one name".to_owned()));
        }
        for index in 0..archive.len() {
            let mut found = archive.by_index(index).map_err(unreadable)?;
            let path = found.name().map_err(unreadable)?.into_owned();
            let mode = found.unix_mode();
            let kind = match mode.map_or(0, |mode| mode & KIND) {
                _ if found.is_dir() => {
                    self.directory(&path)?;
                    continue;
                }
                0 | REGULAR => Kind::File { runs: mode.is_some_and(|mode| mode & OWNER_RUNS != 0) },
                _ if found.is_symlink() => Kind::Link,
                _ => Kind::Special,
            };
            self.entry(&path, &kind, &mut found)?;
        }
        Ok(())
    }

    fn tar(&mut self, input: impl Read) -> Result<(), FolderError> {
        let unreadable = |error: io::Error| FolderError::Unreadable(format!("the tar archive is damaged: {error}"));
        let mut archive = tar::Archive::new(input);
        // tar's own way of reading long names takes as much memory as the archive says.
        let mut long: Option<String> = None;
        for found in archive.entries().map_err(unreadable)?.raw(true) {
            let mut found = found.map_err(unreadable)?;
            let kind = match found.header().entry_type() {
                EntryType::XGlobalHeader => continue,
                EntryType::GNULongName => {
                    long = Some(long_name(&mut found)?);
                    continue;
                }
                EntryType::XHeader => {
                    long = pax_path(&mut found)?.or(long);
                    continue;
                }
                EntryType::GNULongLink => continue,
                EntryType::Directory => {
                    let path = path_of(long.take(), &found)?;
                    self.directory(&path)?;
                    continue;
                }
                EntryType::Regular | EntryType::Continuous => {
                    let runs = found.header().mode().is_ok_and(|mode| mode & OWNER_RUNS != 0);
                    Kind::File { runs }
                }
                EntryType::Symlink | EntryType::Link => Kind::Link,
                _ => Kind::Special,
            };
            let path = path_of(long.take(), &found)?;
            self.entry(&path, &kind, &mut found)?;
        }
        Ok(())
    }

    fn directory(&mut self, path: &str) -> Result<(), FolderError> {
        self.count()?;
        if entry::leaves(path) { Err(out(path)) } else { Ok(()) }
    }

    fn entry(&mut self, path: &str, kind: &Kind, content: &mut dyn Read) -> Result<(), FolderError> {
        self.count()?;
        if entry::leaves(path) {
            return Err(out(path));
        }
        let why = match kind {
            Kind::File { runs } => match self.into.write(path, content, *runs) {
                Err(FolderError::Refused(why)) => why,
                done => return done.map(drop),
            },
            Kind::Link => format!("{path:?} is a link"),
            Kind::Special => format!("{path:?} is not a regular file"),
        };
        if self.left_out.len() == LEFT_OUT_MAX {
            return Err(FolderError::Refused(format!(
                "the archive has more than {LEFT_OUT_MAX} files like this: {why}"
            )));
        }
        self.left_out.push(LeftOut { path: path.trim_start_matches("./").to_owned(), why });
        Ok(())
    }

    fn count(&mut self) -> Result<(), FolderError> {
        self.entries += 1;
        if self.entries > ENTRIES_MAX { Err(too_many()) } else { Ok(()) }
    }
}

/// Refuses what says how many entries it has in 64 bits: memory is taken for all of them.
fn refuse_zip64(file: &mut File) -> Result<(), FolderError> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(ZIP_END_BYTES)))?;
    let mut end = Vec::new();
    file.by_ref().take(ZIP_END_BYTES).read_to_end(&mut end)?;
    file.rewind()?;
    if end.windows(ZIP64_LOCATOR.len()).any(|bytes| bytes == ZIP64_LOCATOR) {
        return Err(FolderError::TooLarge("the zip archive is of the kind for large archives (zip64)".to_owned()));
    }
    Ok(())
}

fn too_many() -> FolderError {
    FolderError::TooLarge(format!("the archive has more than {ENTRIES_MAX} entries"))
}

fn out(path: &str) -> FolderError {
    let path: String = path.chars().take(120).collect();
    FolderError::Refused(format!("the archive is refused: {path:?} leads out of its folder"))
}

/// The path of an entry: the long one that came before it, else its own.
fn path_of(long: Option<String>, found: &tar::Entry<'_, impl Read>) -> Result<String, FolderError> {
    match long {
        Some(long) => Ok(long),
        None => text(found.path_bytes().into_owned()),
    }
}

fn text(bytes: Vec<u8>) -> Result<String, FolderError> {
    String::from_utf8(bytes).map_err(|_| FolderError::Unreadable("a name in the archive is not UTF-8".to_owned()))
}

/// The content of a header that is an entry of its own.
fn header(found: &mut impl Read) -> Result<Vec<u8>, FolderError> {
    let mut bytes = Vec::new();
    let read = found.take(HEADER_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| FolderError::Unreadable(format!("the tar archive is damaged: {error}")))?;
    if bytes.len() as u64 > HEADER_BYTES_MAX {
        return Err(FolderError::TooLarge("a header in the tar archive is too long".to_owned()));
    }
    Ok(bytes)
}

fn long_name(found: &mut impl Read) -> Result<String, FolderError> {
    let mut name = header(found)?;
    name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
    text(name)
}

/// The `path` of a pax header.
fn pax_path(found: &mut impl Read) -> Result<Option<String>, FolderError> {
    let bytes = header(found)?;
    let mut extensions = tar::PaxExtensions::new(&bytes).filter_map(Result::ok);
    let path = extensions.find(|extension| extension.key_bytes() == b"path");
    path.map(|extension| text(extension.value_bytes().to_vec())).transpose()
}

/// Gives so many bytes, then an error.
struct Bounded<R> {
    input: R,
    left: u64,
}

impl<R> Bounded<R> {
    fn new(input: R, bytes_max: u64) -> Self {
        Self { input, left: bytes_max.saturating_add(RATIO_FREE_BYTES) }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::other("it unpacks to more than a hundred times its size, or to more than a skill may have")
        })?;
        Ok(read)
    }
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
