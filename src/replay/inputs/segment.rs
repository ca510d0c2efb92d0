//! Files of framed, checked entries.
//!
//! A segment begins with [`HEADER`]. Each frame is the length of its payload (4 bytes), the quick hash of the payload
//! (8 bytes), both little-endian, and the payload: a kind byte and its body. Nothing is synced: a kill of the process
//! loses nothing that was written, a loss of power the newest frames. What is torn is cut off when it is read.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use agentsvc_systems::replay::quick_hash;

use crate::kernel::disk;

/// What a segment begins with; the last byte is its version.
pub const HEADER: [u8; 16] = *b"agentsvc input\0\x01";
/// Bytes after which another segment is begun.
pub const SEGMENT_BYTES_MAX: u64 = 64 << 20;
/// Bytes of one payload. A longer length is damage, and is refused before there is memory for it.
const PAYLOAD_BYTES_MAX: u32 = 1 << 30;

/// Kinds of frames.
const ENTRY: u8 = 1;
const GAP: u8 = 2;

/// What a frame holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// One step.
    Entry(Vec<u8>),
    /// Inputs are missing from here on, and why.
    Gap(String),
}

/// A segment that is being written.
pub struct SegmentWriter {
    file: File,
    bytes: u64,
    frame: Vec<u8>,
}

impl SegmentWriter {
    /// Begins a segment where no file may be.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(&HEADER)?;
        Ok(Self { file, bytes: HEADER.len() as u64, frame: Vec::new() })
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// Those of the disk; the file may end in half a frame then.
    pub fn entry(&mut self, entry: &[u8]) -> io::Result<()> {
        self.frame(ENTRY, entry)
    }

    /// Says that inputs are missing from here on.
    pub fn gap(&mut self, why: &str) -> io::Result<()> {
        self.frame(GAP, why.as_bytes())
    }

    fn frame(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len() + 1).ok().filter(|length| *length <= PAYLOAD_BYTES_MAX);
        let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "an entry is too long"))?;
        self.frame.clear();
        self.frame.extend_from_slice(&length.to_le_bytes());
        self.frame.extend_from_slice(&[0; 8]);
        self.frame.push(kind);
        self.frame.extend_from_slice(body);
        let check = quick_hash(&self.frame[12..]);
        self.frame[4..12].copy_from_slice(&check.to_le_bytes());
        // One write, so that a kill leaves the frame whole or not at all.
        self.file.write_all(&self.frame)?;
        self.bytes += self.frame.len() as u64;
        if self.frame.capacity() > 1 << 20 {
            self.frame = Vec::new();
        }
        Ok(())
    }

    /// Bytes written so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Reads the frames of a segment in order. It ends where the file ends or is torn.
pub struct SegmentReader {
    input: BufReader<File>,
    torn: bool,
}

impl SegmentReader {
    /// Begins to read. A file that is too short for a header is a torn one without frames.
    ///
    /// # Errors
    /// Those of the disk; [`io::ErrorKind::InvalidData`] when it is no segment of this release.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut input = BufReader::with_capacity(1 << 16, disk::open(path)?);
        let mut header = [0; HEADER.len()];
        let torn = match input.read_exact(&mut header) {
            Ok(()) if header == HEADER => false,
            Ok(()) => return Err(io::Error::new(io::ErrorKind::InvalidData, "not an input log of this release")),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => true,
            Err(error) => return Err(error),
        };
        Ok(Self { input, torn })
    }

    /// Does the file end in the middle of a frame, or in a damaged one?
    pub const fn is_torn(&self) -> bool {
        self.torn
    }

    /// The next frame.
    pub fn next_frame(&mut self) -> io::Result<Option<Frame>> {
        if self.torn || self.input.fill_buf_is_empty()? {
            return Ok(None);
        }
        match self.read() {
            Ok(Some(frame)) => return Ok(Some(frame)),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
        }
        self.torn = true;
        Ok(None)
    }

    fn read(&mut self) -> io::Result<Option<Frame>> {
        let (mut length, mut check) = ([0; 4], [0; 8]);
        self.input.read_exact(&mut length)?;
        self.input.read_exact(&mut check)?;
        let length = u32::from_le_bytes(length);
        if length == 0 || length > PAYLOAD_BYTES_MAX {
            return Ok(None);
        }
        let mut payload = Vec::new();
        (&mut self.input).take(u64::from(length)).read_to_end(&mut payload)?;
        if payload.len() != length as usize || quick_hash(&payload) != u64::from_le_bytes(check) {
            return Ok(None);
        }
        let body = payload.split_off(1);
        Ok(match payload[0] {
            ENTRY => Some(Frame::Entry(body)),
            GAP => Some(Frame::Gap(String::from_utf8_lossy(&body).into_owned())),
            _ => None,
        })
    }
}

/// Asks whether a reader is at its end.
trait AtEnd {
    fn fill_buf_is_empty(&mut self) -> io::Result<bool>;
}

impl AtEnd for BufReader<File> {
    fn fill_buf_is_empty(&mut self) -> io::Result<bool> {
        Ok(io::BufRead::fill_buf(self)?.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(path: &Path) -> (Vec<Frame>, bool) {
        let mut reader = SegmentReader::open(path).unwrap();
        let mut frames = Vec::new();
        while let Some(frame) = reader.next_frame().unwrap() {
            frames.push(frame);
        }
        (frames, reader.is_torn())
    }

    #[test]
    fn what_is_torn_or_damaged_is_cut_off_and_the_rest_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.log");
        let mut writer = SegmentWriter::create(&path).unwrap();
        writer.entry(b"one").unwrap();
        writer.entry(&[7; 300]).unwrap();
        writer.gap("the disk is full").unwrap();
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.len() as u64, writer.bytes());
        let all =
            [Frame::Entry(b"one".to_vec()), Frame::Entry(vec![7; 300]), Frame::Gap("the disk is full".to_owned())];
        assert_eq!(frames(&path), (all.to_vec(), false));
        let ends = [16, 16 + 16, 16 + 16 + 313, whole.len()];
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (found, torn) = frames(&path);
            let expected = ends.iter().filter(|end| **end <= length).count().saturating_sub(1);
            assert_eq!(found, all[..expected], "{length}");
            assert_eq!(torn, !ends.contains(&length), "{length}");
        }
        for at in 16..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            let (found, torn) = frames(&path);
            assert!(torn && found.len() < 3 && found == all[..found.len()], "{at}");
        }
        std::fs::write(&path, b"something else entirely").unwrap();
        assert!(SegmentReader::open(&path).is_err());
    }
}
