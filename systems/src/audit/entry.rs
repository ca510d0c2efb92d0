//! An entry as bytes: one form, which is hashed and stored. Numbers are big-endian.
//!
//! ```text
//! version   1 byte, 1
//! id        8 bytes
//! at        8 bytes, milliseconds since 1970-01-01T00:00:00Z, signed
//! prev_hash 32 bytes
//! event_type, agent_id, actor, details: each 4 bytes for its length, then its UTF-8 text;
//!           agent_id is a UUID in its hyphenated form, or empty
//! hash      32 bytes: SHA-256 of everything before it
//! ```

use sha2::{Digest, Sha256};

use agentsvc_components::audit::record::{AuditEntry, Sha256Hash};
use agentsvc_components::{AgentId, Timestamp};

/// The version of the form; part of what is hashed.
const VERSION: u8 = 1;
/// Bytes before the texts.
const FIXED_BYTES: usize = 1 + 8 + 8 + 32;
/// Bytes of a hash.
const HASH_BYTES: usize = 32;

/// Sets the entry's hash and gives its stored form.
#[must_use]
pub fn encode(entry: &mut AuditEntry) -> Vec<u8> {
    let agent = entry.agent.map(|agent| agent.to_string()).unwrap_or_default();
    let texts = [&*entry.event_type, &*agent, &*entry.actor, &*entry.details];
    let length = FIXED_BYTES + HASH_BYTES + texts.iter().map(|text| 4 + text.len()).sum::<usize>();
    let mut bytes = Vec::with_capacity(length);
    bytes.push(VERSION);
    bytes.extend_from_slice(&entry.id.to_be_bytes());
    bytes.extend_from_slice(&entry.at.0.to_be_bytes());
    bytes.extend_from_slice(&entry.prev_hash);
    for text in texts {
        // Texts are bounded far below this; a longer one could not be told from a shorter one.
        bytes.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    entry.hash = Sha256::digest(&bytes).into();
    bytes.extend_from_slice(&entry.hash);
    bytes
}

/// The parts of a stored entry that tie it to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tie {
    pub(super) id: u64,
    pub(super) at: Timestamp,
    pub(super) prev_hash: Sha256Hash,
    /// As stored.
    pub(super) hash: Sha256Hash,
}

impl Tie {
    /// Reads them. `None` when the row is too short or of another version.
    pub(super) fn read(row: &[u8]) -> Option<Self> {
        let (head, rest) = row.split_first_chunk::<FIXED_BYTES>()?;
        let hash = *rest.last_chunk::<HASH_BYTES>()?;
        if head[0] != VERSION {
            return None;
        }
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|n| head[at + n]));
        let prev_hash = std::array::from_fn(|n| head[17 + n]);
        Some(Self { id: word(1), at: Timestamp(word(9).cast_signed()), prev_hash, hash })
    }

    /// Is the stored hash that of the row?
    pub(super) fn holds(&self, row: &[u8]) -> bool {
        let hashed = &row[..row.len().saturating_sub(HASH_BYTES)];
        Sha256Hash::from(Sha256::digest(hashed)) == self.hash
    }
}

/// Reads a stored entry; its hash is not checked. `None` when the row has another form.
#[must_use]
pub fn decode(row: &[u8]) -> Option<AuditEntry> {
    let Tie { id, at, prev_hash, hash } = Tie::read(row)?;
    let mut rest = row.get(FIXED_BYTES..row.len() - HASH_BYTES)?;
    let mut text = || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (text, behind) = behind.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        rest = behind;
        std::str::from_utf8(text).ok()
    };
    let (event_type, agent, actor, details) = (text()?, text()?, text()?, text()?);
    let agent: Option<AgentId> = if agent.is_empty() { None } else { Some(agent.parse().ok()?) };
    let (event_type, actor, details) = (event_type.into(), actor.into(), details.into());
    rest.is_empty().then_some(AuditEntry { id, at, event_type, agent, actor, details, prev_hash, hash })
}
