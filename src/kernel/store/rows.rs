//! The form of a rows file: the rows of a store, one after another, with a checked end.
//!
//! | bytes | |
//! |-------|---|
//! | 16 | [`HEADER`]: what it is and its version |
//! | then for each row | |
//! | 1 | the space: 1 `world`, 2 `content` |
//! | 2 | length of the key, big-endian |
//! | n | the key |
//! | 4 | length of the value, big-endian |
//! | n | the value |
//! | at the end | |
//! | 1 | 255 |
//! | 8, 8, 8 | rows of `world`, rows of `content`, bytes of all keys and values, big-endian |
//! | 32 | SHA-256 of all rows, from the first space byte to the last value's end |
//!
//! Rows stand in order: those of `world` first, keys ascending within a space, no key twice. Writing and reading
//! both insist, so that a reader can fill a store in one pass. Compression is the caller's: a snapshot is a compressed
//! file of a view of the store, and [`read`] reads such a file into records, or into a store.

use std::io::{self, BufReader, ErrorKind, Read, Write};

use agentsvc_components::kernel::record::Space;
use agentsvc_systems::kernel::record;
use sha2::{Digest, Sha256};

/// What a rows file begins with; the last byte is its version.
pub const HEADER: [u8; 16] = *b"agentsvc rows\n\0\x01";

/// Bytes of a key. Keys are a kind byte, ids and names of a few hundred bytes; a longer one is damage.
pub const KEY_BYTES_MAX: usize = 4 << 10;
/// Bytes of a value. The longest rows are messages with what is attached to them; a longer one is damage, and is
/// refused before there is memory for it.
pub const VALUE_BYTES_MAX: usize = 64 << 20;

/// The space byte of the end.
const END: u8 = 0xff;
/// Bytes gathered before they go to the writer below.
const CHUNK_BYTES: usize = 64 << 10;

/// One row of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where it lives.
    pub space: Space,
    /// The kind byte and the ids.
    pub key: Vec<u8>,
    /// The encoded record.
    pub value: Vec<u8>,
}

impl Row {
    /// Bytes of key and value.
    pub fn bytes(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }
}

/// What a rows file holds, as its end says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowTotals {
    /// Rows of the world space.
    pub world: u64,
    /// Rows of the content space.
    pub content: u64,
    /// Bytes of all keys and values.
    pub bytes: u64,
    /// SHA-256 of all rows in their written form: equal for equal worlds.
    pub sha256: [u8; 32],
}

/// Why rows cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// The disk or what lies below failed.
    #[error("the rows cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is no rows file.
    #[error("not a rows file")]
    Foreign,
    /// A later release wrote it.
    #[error("written by a newer release (rows version {found}; this release reads version {})", HEADER[15])]
    Newer {
        /// The version found.
        found: u8,
    },
    /// It ends too early.
    #[error("truncated in row {row}")]
    Truncated {
        /// Which row, from 1.
        row: u64,
    },
    /// It is not what was written.
    #[error("damaged at row {row}: {reason}")]
    Damaged {
        /// Which row, from 1.
        row: u64,
        /// What is wrong.
        reason: &'static str,
    },
    /// A row holds no record that this release can read.
    #[error(transparent)]
    Record(#[from] record::Error),
}

/// The space byte of a row.
fn tag(space: Space) -> u8 {
    match space {
        Space::World => 1,
        Space::Content => 2,
    }
}

/// Counts rows, hashes them and insists on their order.
#[derive(Default)]
struct Tally {
    totals: RowTotals,
    hash: Sha256,
    /// The space byte and key of the row before; 0 before the first.
    last: (u8, Vec<u8>),
}

impl Tally {
    /// Notes a row; says what is wrong with it.
    fn add(&mut self, space: Space, key: &[u8], value_bytes: usize) -> Result<(), &'static str> {
        let tag = tag(space);
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err("invalid key length");
        }
        if value_bytes > VALUE_BYTES_MAX {
            return Err("value too long");
        }
        if (tag, key) <= (self.last.0, self.last.1.as_slice()) {
            return Err("rows out of order");
        }
        self.last.0 = tag;
        self.last.1.clear();
        self.last.1.extend_from_slice(key);
        match space {
            Space::World => self.totals.world += 1,
            Space::Content => self.totals.content += 1,
        }
        self.totals.bytes += (key.len() + value_bytes) as u64;
        Ok(())
    }

    fn row(&self) -> u64 {
        self.totals.world + self.totals.content + 1
    }

    fn finish(self) -> RowTotals {
        RowTotals { sha256: self.hash.finalize().into(), ..self.totals }
    }
}

/// The bytes of the end.
fn trailer(totals: &RowTotals) -> [u8; 56] {
    let mut bytes = [0; 56];
    bytes[..8].copy_from_slice(&totals.world.to_be_bytes());
    bytes[8..16].copy_from_slice(&totals.content.to_be_bytes());
    bytes[16..24].copy_from_slice(&totals.bytes.to_be_bytes());
    bytes[24..].copy_from_slice(&totals.sha256);
    bytes
}

/// Writes rows. Without [`RowWriter::finish`] what it wrote is no rows file.
pub struct RowWriter<W: Write> {
    out: W,
    tally: Tally,
    /// Rows that are not with `out` yet.
    waiting: Vec<u8>,
}

impl<W: Write> RowWriter<W> {
    /// Begins a rows file. It gathers what it writes, so that `out` needs no buffer of its own.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&HEADER)?;
        Ok(Self { out, tally: Tally::default(), waiting: Vec::with_capacity(CHUNK_BYTES) })
    }

    /// Adds a row behind all that are there.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when it is out of order, its key is empty or it is longer than the bounds; those
    /// of `out`.
    pub fn push(&mut self, space: Space, key: &[u8], value: &[u8]) -> io::Result<()> {
        let refused = |reason| io::Error::new(ErrorKind::InvalidInput, format!("a row cannot be written: {reason}"));
        self.tally.add(space, key, value.len()).map_err(refused)?;
        self.waiting.push(tag(space));
        self.waiting.extend_from_slice(&u16::try_from(key.len()).unwrap_or(u16::MAX).to_be_bytes());
        self.waiting.extend_from_slice(key);
        self.waiting.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_be_bytes());
        self.waiting.extend_from_slice(value);
        if self.waiting.len() >= CHUNK_BYTES { self.hand_on() } else { Ok(()) }
    }

    fn hand_on(&mut self) -> io::Result<()> {
        self.tally.hash.update(&self.waiting);
        self.out.write_all(&self.waiting)?;
        self.waiting.clear();
        Ok(())
    }

    /// Writes the end and gives `out` back, flushed but not synced.
    pub fn finish(mut self) -> io::Result<(W, RowTotals)> {
        self.hand_on()?;
        let totals = self.tally.finish();
        self.out.write_all(&[END])?;
        self.out.write_all(&trailer(&totals))?;
        self.out.flush()?;
        Ok((self.out, totals))
    }
}

/// Reads rows. Everything it gives may still turn out to be damaged until it has come to its end without an error.
pub struct RowReader<R: Read> {
    input: BufReader<R>,
    tally: Option<Tally>,
    totals: Option<RowTotals>,
}

impl<R: Read> RowReader<R> {
    /// Begins to read. `input` needs no buffer of its own.
    ///
    /// # Errors
    /// [`RowError::Foreign`] when it is no rows file, [`RowError::Newer`] when this release cannot read it, those of
    /// `input`.
    pub fn new(input: R) -> Result<Self, RowError> {
        let mut input = BufReader::with_capacity(CHUNK_BYTES, input);
        let mut header = [0; HEADER.len()];
        input.read_exact(&mut header).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => RowError::Foreign,
            _ => RowError::Io(error),
        })?;
        let version = HEADER.len() - 1;
        if header[..version] != HEADER[..version] {
            return Err(RowError::Foreign);
        }
        if header[version] != HEADER[version] {
            return Err(RowError::Newer { found: header[version] });
        }
        Ok(Self { input, tally: Some(Tally::default()), totals: None })
    }

    /// What it held, once all of it was read and found whole.
    pub fn totals(&self) -> Option<RowTotals> {
        self.totals
    }

    /// Reads the next row, or checks the end.
    fn read(&mut self, tally: &mut Tally) -> Result<Option<Row>, RowError> {
        let row = tally.row();
        let cut = |error: io::Error| match error.kind() {
            ErrorKind::UnexpectedEof => RowError::Truncated { row },
            _ => RowError::Io(error),
        };
        let damaged = |reason| RowError::Damaged { row, reason };
        let mut space_tag = [0; 1];
        self.input.read_exact(&mut space_tag).map_err(cut)?;
        let space = match space_tag[0] {
            1 => Space::World,
            2 => Space::Content,
            END => return Ok(None),
            _ => return Err(damaged("unknown keyspace")),
        };
        let mut key_length = [0; 2];
        self.input.read_exact(&mut key_length).map_err(cut)?;
        let key_bytes = usize::from(u16::from_be_bytes(key_length));
        if key_bytes > KEY_BYTES_MAX {
            return Err(damaged("invalid key length"));
        }
        let mut key = vec![0; key_bytes];
        self.input.read_exact(&mut key).map_err(cut)?;
        let mut value_length = [0; 4];
        self.input.read_exact(&mut value_length).map_err(cut)?;
        let value_bytes = u32::from_be_bytes(value_length) as usize;
        tally.add(space, &key, value_bytes).map_err(damaged)?;
        let mut value = vec![0; value_bytes];
        self.input.read_exact(&mut value).map_err(cut)?;
        for part in [space_tag.as_slice(), &key_length, &key, &value_length, &value] {
            tally.hash.update(part);
        }
        Ok(Some(Row { space, key, value }))
    }

    /// Compares the end with what was read.
    fn check_end(&mut self, tally: Tally) -> Result<RowTotals, RowError> {
        let row = tally.row();
        let mut written = [0; 56];
        self.input.read_exact(&mut written).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => RowError::Truncated { row },
            _ => RowError::Io(error),
        })?;
        let totals = tally.finish();
        let expected = trailer(&totals);
        if written[..24] != expected[..24] {
            return Err(RowError::Damaged { row, reason: "the row count does not match" });
        }
        if written != expected {
            return Err(RowError::Damaged { row, reason: "the checksum does not match" });
        }
        if self.input.read(&mut [0])? != 0 {
            return Err(RowError::Damaged { row, reason: "data after the end" });
        }
        Ok(totals)
    }
}

impl<R: Read> Iterator for RowReader<R> {
    type Item = Result<Row, RowError>;

    /// The next row. After the last one the end is checked; after an error there is nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        let mut tally = self.tally.take()?;
        match self.read(&mut tally) {
            Ok(Some(row)) => {
                self.tally = Some(tally);
                Some(Ok(row))
            }
            Ok(None) => match self.check_end(tally) {
                Ok(totals) => {
                    self.totals = Some(totals);
                    None
                }
                Err(error) => Some(Err(error)),
            },
            Err(error) => Some(Err(error)),
        }
    }
}

pub mod read;
#[cfg(test)]
mod tests;
