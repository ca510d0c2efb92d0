//! A checkpoint as bytes: what is signed, and how it is stored. Numbers are big-endian.
//!
//! ```text
//! version   1 byte, 1
//! sequence  8 bytes
//! hash      32 bytes
//! previous  8 bytes
//! first     8 bytes
//! anchor    32 bytes
//! at        8 bytes, milliseconds since 1970-01-01T00:00:00Z, signed
//! signature 64 bytes, Ed25519, of the text `agentsvc audit checkpoint\n` and everything before it
//! ```

use agentsvc_components::Timestamp;
use agentsvc_components::audit::record::AuditCheckpoint;

/// The version of the form; part of what is signed.
const VERSION: u8 = 1;
/// Stands before what is signed, so that no signature of something else can pass for one of a checkpoint.
const CONTEXT: &[u8] = b"agentsvc audit checkpoint\n";
/// Bytes of what is signed, without its context.
const BODY_BYTES: usize = 1 + 8 + 32 + 8 + 8 + 32 + 8;
/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;

fn body(checkpoint: &AuditCheckpoint) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BODY_BYTES + SIGNATURE_BYTES);
    bytes.push(VERSION);
    bytes.extend_from_slice(&checkpoint.sequence.to_be_bytes());
    bytes.extend_from_slice(&checkpoint.hash);
    bytes.extend_from_slice(&checkpoint.previous.to_be_bytes());
    bytes.extend_from_slice(&checkpoint.first.to_be_bytes());
    bytes.extend_from_slice(&checkpoint.anchor);
    bytes.extend_from_slice(&checkpoint.at.0.to_be_bytes());
    bytes
}

/// What is to be signed.
#[must_use]
pub fn message(checkpoint: &AuditCheckpoint) -> Vec<u8> {
    [CONTEXT, &body(checkpoint)].concat()
}

/// The stored form.
#[must_use]
pub fn encode_checkpoint(checkpoint: &AuditCheckpoint, signature: &[u8; SIGNATURE_BYTES]) -> Vec<u8> {
    let mut bytes = body(checkpoint);
    bytes.extend_from_slice(signature);
    bytes
}

/// Reads a stored checkpoint whose signature of a message `is_signed`. `None` when the form or the signature is wrong.
pub fn parse_checkpoint(stored: &[u8], is_signed: impl Fn(&[u8], &[u8]) -> bool) -> Option<AuditCheckpoint> {
    let (body, signature) = stored.split_at_checked(BODY_BYTES)?;
    if body[0] != VERSION || signature.len() != SIGNATURE_BYTES || !is_signed(&[CONTEXT, body].concat(), signature) {
        return None;
    }
    let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|n| body[at + n]));
    let hash = |at: usize| std::array::from_fn(|n| body[at + n]);
    Some(AuditCheckpoint {
        sequence: word(1),
        hash: hash(9),
        previous: word(41),
        first: word(49),
        anchor: hash(57),
        at: Timestamp(word(89).cast_signed()),
    })
}
