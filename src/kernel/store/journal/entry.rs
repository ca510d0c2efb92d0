//! Entries of a journal and their encoded form.
//!
//! An encoded entry is a [`Seal`], a version byte and, compressed, `world, epoch, index, previous hash, kind` and what the
//! kind brings: for a step its mark, its records as they are stored, and the erased keys. Each entry names the hash of the
//! valid one before it, so that a reader finds out when one was lost or comes from an owner that was fenced. By the seal it
//! finds out what others wrote, or what was damaged, before it looks into it.

use std::borrow::Cow;
use std::io::{Error as IoError, Read as _};

use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::kernel::step::StepMark;
use agentsvc_systems::kernel::inputs::wire::{Malformed, Reader, put_bytes, put_number};
use sha2::{Digest, Sha256};

use super::seal::Seal;

/// The version of encoded entries that this release writes, and the newest that it reads.
const VERSION: u8 = 2;
/// How hard zstd tries.
const LEVEL: i32 = 1;
/// Bytes of a body that is written and read: more than the largest group that a writer can come to.
pub(super) const BODY_BYTES_MAX: usize = 2 * limit::STORE_BACKLOG_BYTES_MAX;
/// Bytes that stand before the body, at most.
const HEAD_BYTES_MAX: usize = 64;

/// One entry, as a reader of the journal finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it stands.
    pub position: Position,
    /// What it brings.
    pub body: Body<'static>,
}

/// What an entry brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// A node takes the world over.
    Open {
        /// Its name.
        node: Cow<'a, str>,
    },
    /// What the writer stores as one batch.
    Step {
        /// The newest step of the world, if the batch holds one.
        step: Option<StepMark>,
        /// Records, each key at most once.
        ops: Cow<'a, [Op]>,
        /// Keys of the content space whose rows are erased; none of them is among `ops`.
        erased: Cow<'a, [Vec<u8>]>,
    },
    /// The world goes on from a snapshot: the entries before it no longer count.
    Rebase {
        /// The name of the snapshot.
        snapshot: Cow<'a, str>,
    },
    /// The owner gives the world up in order.
    Close,
    /// A piece of a body that is too large for one entry. It is no entry of its own: it counts with the [`Body::Last`] behind it,
    /// and the next entry names the hash of the one before the pieces.
    Part {
        /// The next bytes of the body.
        bytes: Cow<'a, [u8]>,
    },
    /// The end of a body that came in pieces.
    Last {
        /// SHA-256 of all of it.
        whole: [u8; 32],
        /// Its last bytes.
        bytes: Cow<'a, [u8]>,
    },
}

impl Body<'_> {
    /// The body as bytes, to be cut into pieces.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_body(&mut bytes, self);
        bytes
    }

    /// The body of pieces that came together.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Body<'static>, Malformed> {
        read_body(&mut Reader(bytes))
    }
}

/// A place in a journal: the newest valid entry, and what the next one must know of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The number of the world.
    pub world: u16,
    /// Who owns it: each owner opens the next epoch.
    pub epoch: u64,
    /// The entry's number in its journal, from 1.
    pub index: u64,
    /// The hash of the encoded entry.
    pub hash: [u8; 32],
}

impl Position {
    /// Its stored form.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 50] {
        let mut bytes = [0; 50];
        bytes[..2].copy_from_slice(&self.world.to_be_bytes());
        bytes[2..10].copy_from_slice(&self.epoch.to_be_bytes());
        bytes[10..18].copy_from_slice(&self.index.to_be_bytes());
        bytes[18..].copy_from_slice(&self.hash);
        bytes
    }

    /// Reads the stored form; `None` when it is of another length.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (world, rest) = bytes.split_first_chunk()?;
        let (epoch, rest) = rest.split_first_chunk()?;
        let (index, hash) = rest.split_first_chunk()?;
        let (epoch, index) = (u64::from_be_bytes(*epoch), u64::from_be_bytes(*index));
        Some(Self { world: u16::from_be_bytes(*world), epoch, index, hash: hash.try_into().ok()? })
    }

    /// Encodes `body` as the entry `index` behind this one. Gives its position, too.
    ///
    /// # Errors
    /// Those of compressing it; it is too large, or there is no epoch left.
    pub fn encode(&self, index: u64, body: &Body<'_>, seal: &Seal) -> std::io::Result<(Self, Vec<u8>)> {
        let epoch = self.epoch.checked_add(u64::from(matches!(body, Body::Open { .. })));
        let epoch = epoch.ok_or_else(|| IoError::other("there are no more epochs"))?;
        let mut plain = Vec::new();
        put_number(&mut plain, self.world.into());
        put_number(&mut plain, epoch);
        put_number(&mut plain, index);
        plain.extend_from_slice(&self.hash);
        put_body(&mut plain, body);
        if plain.len() > HEAD_BYTES_MAX + BODY_BYTES_MAX {
            return Err(IoError::other(format!("an entry of {} bytes is too large for a journal", plain.len())));
        }
        let mut bytes = vec![VERSION];
        zstd::stream::copy_encode(plain.as_slice(), &mut bytes, LEVEL)?;
        let encoded = seal.close(&bytes);
        Ok((Self { epoch, index, hash: Sha256::digest(&encoded).into(), ..*self }, encoded))
    }

    /// Reads the message that stands at `index`, behind this entry.
    ///
    /// # Errors
    /// [`Malformed`]: one of those who share the journal wrote it, but a later release, or it is too large.
    pub fn accept(&self, index: u64, message: &[u8], seal: &Seal) -> Result<Found, Malformed> {
        let Some(bytes) = seal.open(message) else { return Ok(Found::Foreign) };
        let (version, compressed) = bytes.split_first().ok_or(Malformed::Short)?;
        if *version != VERSION {
            return Err(Malformed::Unknown { what: "version", found: (*version).into() });
        }
        let plain = decompress(compressed)?;
        let mut reader = Reader(&plain);
        let (world, epoch, own_index) = (reader.number()?, reader.number()?, reader.number()?);
        let previous = reader.take(32)?;
        if world != u64::from(self.world) || own_index != index || epoch < self.epoch {
            return Ok(Found::Void);
        }
        if previous != self.hash {
            return Ok(Found::Unlinked);
        }
        let body = read_body(&mut reader)?;
        let opened = u64::from(matches!(body, Body::Open { .. }));
        if self.epoch.checked_add(opened) != Some(epoch) {
            return Ok(Found::Void);
        }
        let position = Self { world: self.world, epoch, index, hash: Sha256::digest(message).into() };
        Ok(Found::Valid(Entry { position, body }))
    }
}

/// What a message of the log is, behind some entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The next entry.
    Valid(Entry),
    /// Its owner was fenced, or took it for another index.
    Void,
    /// It was made for this place, but behind another entry: its maker was fenced, or that entry is missing.
    Unlinked,
    /// Nobody who shares the journal wrote it, or it is not what was written.
    Foreign,
}

fn decompress(compressed: &[u8]) -> Result<Vec<u8>, Malformed> {
    let damaged = |reason: String| Malformed::Part { what: "an entry".to_owned(), reason };
    let failed = |error: IoError| damaged(error.to_string());
    let most = HEAD_BYTES_MAX + BODY_BYTES_MAX;
    let mut plain = Vec::new();
    let decoder = zstd::stream::Decoder::with_buffer(compressed).map_err(failed)?;
    decoder.take(most as u64 + 1).read_to_end(&mut plain).map_err(failed)?;
    if plain.len() <= most { Ok(plain) } else { Err(damaged("it is too large".to_owned())) }
}

fn put_body(out: &mut Vec<u8>, body: &Body<'_>) {
    match body {
        Body::Open { node } => {
            out.push(1);
            put_bytes(out, node.as_bytes());
        }
        Body::Step { step, ops, erased } => {
            out.push(2);
            put_bytes(out, step.map(StepMark::to_bytes).as_ref().map_or(&[], |bytes| bytes.as_slice()));
            put_number(out, ops.len() as u64);
            for op in ops.iter() {
                out.push(u8::from(op.space == Space::Content) | u8::from(op.value.is_some()) << 1);
                put_bytes(out, &op.key);
                op.value.iter().for_each(|value| put_bytes(out, value));
            }
            put_number(out, erased.len() as u64);
            erased.iter().for_each(|key| put_bytes(out, key));
        }
        Body::Rebase { snapshot } => {
            out.push(3);
            put_bytes(out, snapshot.as_bytes());
        }
        Body::Close => out.push(4),
        Body::Part { bytes } => {
            out.push(5);
            put_bytes(out, bytes);
        }
        Body::Last { whole, bytes } => {
            out.push(6);
            out.extend_from_slice(whole);
            put_bytes(out, bytes);
        }
    }
}

fn read_body(reader: &mut Reader<'_>) -> Result<Body<'static>, Malformed> {
    let text = |bytes: &[u8]| Cow::Owned(String::from_utf8_lossy(bytes).into_owned());
    Ok(match reader.byte()? {
        1 => Body::Open { node: text(reader.bytes()?) },
        2 => {
            let step = StepMark::from_bytes(reader.bytes()?);
            let ops = (0..reader.number()?).map(|_| read_op(reader)).collect::<Result<_, _>>()?;
            let erased = (0..reader.number()?).map(|_| reader.bytes().map(<[u8]>::to_vec)).collect::<Result<_, _>>()?;
            Body::Step { step, ops: Cow::Owned(ops), erased: Cow::Owned(erased) }
        }
        3 => Body::Rebase { snapshot: text(reader.bytes()?) },
        4 => Body::Close,
        5 => Body::Part { bytes: reader.bytes()?.to_vec().into() },
        6 => {
            let whole = reader.take(32)?.try_into().map_err(|_| Malformed::Short)?;
            Body::Last { whole, bytes: reader.bytes()?.to_vec().into() }
        }
        other => return Err(Malformed::Unknown { what: "kind of entry", found: other.into() }),
    })
}

fn read_op(reader: &mut Reader<'_>) -> Result<Op, Malformed> {
    let flags = reader.byte()?;
    let space = if flags & 1 == 0 { Space::World } else { Space::Content };
    let key = reader.bytes()?.to_vec();
    let value = if flags & 2 == 0 { None } else { Some(reader.bytes()?.to_vec()) };
    Ok(Op { space, key, value })
}
