//! Stored forms to bytes and back. The table of kinds is in `components/src/kernel/record.rs`.
//!
//! A value is one version byte and then the record as MessagePack with named fields. A reader accepts every
//! version up to its own; fields that a later version added are filled by `#[serde(default)]`.

mod content;
mod deferred;
pub(crate) mod key;
mod kind;

pub use content::{CheckRow, ContentKind};
pub(crate) use content::{check_content, is_record, is_text};
pub use key::{
    AUDIT_PREFIX, AuditKey, MessageKey, agent_prefixes, audit_checkpoint_key, audit_entry_key, entry_prefix,
    knowledge_prefix, log_prefix, log_prefixes, manifest_text_key, memory_key, memory_prefix, message_key,
    parse_audit_key, parse_message_key, parse_sweep_key, result_key, summary_key, summary_prefix, trace_key,
    trace_prefix,
};

pub use deferred::{BoxedRecord, DeferredRecord};
pub(crate) use kind::{Entities, kind_of, read, remove_component, restore_components, unknown, uuid_of};
pub use kind::{Kind, ReadRow, put, put_component, read_as, remove};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::{AgentId, LogId};

/// The version this build writes.
pub const VERSION: u8 = 1;

/// Why a stored record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key is of no known kind or has the wrong length.
    #[error("unknown record key {0}")]
    Key(String),
    /// A newer release wrote it.
    #[error("record {key} has version {found}; this build reads up to {VERSION}")]
    Newer {
        /// The key in hex.
        key: String,
        /// The version found.
        found: u8,
    },
    /// The bytes are not what they should be.
    #[error("record {key} cannot be read: {reason}")]
    Corrupt {
        /// The key in hex.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// A record points at another that is not there.
    #[error("record {key} refers to a {what} that is not stored")]
    Dangling {
        /// The record's id.
        key: String,
        /// What is missing.
        what: &'static str,
    },
}

/// The stored form of `record`.
pub fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    bytes.push(VERSION);
    let mut serializer = rmp_serde::Serializer::new(&mut bytes).with_struct_map();
    record.serialize(&mut serializer).expect("writing plain values to memory cannot fail");
    bytes
}

/// Reads one stored value; `key` is only for the error's text.
pub fn decode<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, Error> {
    match value.split_first() {
        Some((&version, body)) if version <= VERSION && version > 0 => {
            rmp_serde::from_slice(body).map_err(|error| Error::Corrupt { key: hex(key), reason: error.to_string() })
        }
        Some((&found, _)) if found > VERSION => Err(Error::Newer { key: hex(key), found }),
        _ => Err(Error::Corrupt { key: hex(key), reason: "no version byte".to_owned() }),
    }
}

/// The SHA-256 of these parts, each with its length before it.
#[must_use]
pub fn digest<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.as_ref().len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

/// Bytes as lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes of a text in hex, in either case; nothing for any other text.
#[must_use]
pub fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = text.as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    if rest.is_empty() { bytes.collect() } else { None }
}

pub(crate) fn op(space: Space, key: Vec<u8>, value: Option<Vec<u8>>) -> Op {
    Op { space, key, value }
}

/// A row of the content space.
pub(crate) fn put_content<T: Serialize>(key: Vec<u8>, record: &T) -> Op {
    op(Space::Content, key, Some(encode(record)))
}

pub(crate) fn put_sweep(log: LogId) -> Op {
    op(Space::World, key::bytes(b'w', &log.0.to_be_bytes()), Some(vec![VERSION]))
}

pub(crate) fn remove_sweep(log: LogId) -> Op {
    op(Space::World, key::bytes(b'w', &log.0.to_be_bytes()), None)
}

pub(crate) fn put_agent_sweep(agent: AgentId) -> Op {
    op(Space::World, key::uuid(b'w', agent.0), Some(vec![VERSION]))
}

pub(crate) fn remove_agent_sweep(agent: AgentId) -> Op {
    op(Space::World, key::uuid(b'w', agent.0), None)
}

pub(crate) fn put_manifest_text(agent: AgentId, text: &str) -> Op {
    op(Space::Content, manifest_text_key(agent), Some(text.as_bytes().to_vec()))
}

pub(crate) fn remove_manifest_text(agent: AgentId) -> Op {
    op(Space::Content, manifest_text_key(agent), None)
}

/// The world's record of the audit trail.
pub const AUDIT_HEAD_KEY: [u8; 1] = *b"z";

/// `row` is the entry in the form that was hashed.
pub(crate) fn put_audit_entry(id: u64, row: Vec<u8>) -> Op {
    op(Space::Content, audit_entry_key(id), Some(row))
}

/// The record of a signed checkpoint, which stands behind its entry; `row` is its stored form.
#[must_use]
pub fn put_audit_checkpoint(id: u64, row: Vec<u8>) -> Op {
    op(Space::Content, audit_checkpoint_key(id), Some(row))
}

#[cfg(test)]
pub(crate) mod tests;
