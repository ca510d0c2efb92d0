//! Entries as messages of the stream: one that is larger than a message may be travels in parts.
//!
//! The parts of an entry stand one behind the other, and its index is that of the last one. A part is a byte that no entry
//! begins with, the number of parts, its own number from 0, the hash of the whole and its bytes. An entry of which a part is
//! missing, or between whose parts something else stands, is void.

use async_nats::Bytes;
use sha2::{Digest, Sha256};

use crate::kernel::store::Error;
use crate::kernel::store::journal::entry::{Body, Position};

/// Bytes of one message. Servers take 1 MiB unless they are told otherwise.
const MESSAGE_BYTES_MAX: usize = 512 << 10;
/// What a part begins with; an entry begins with its version.
const PART: u8 = 0xff;
/// Bytes in front of those of the entry.
const HEAD_BYTES: usize = 1 + 4 + 4 + 32;
/// Bytes by which an entry may grow when its index does.
const GROWTH_BYTES: usize = 32;

/// Encodes `body` as the entry behind `newest` whose first message has the sequence `next`. Gives where it stands, and its
/// messages.
///
/// # Errors
/// It cannot be compressed.
pub(super) fn cut(newest: &Position, next: u64, body: &Body<'_>) -> Result<(Position, Vec<Bytes>), Error> {
    let failed = |error: std::io::Error| Error::Journal(format!("an entry cannot be encoded: {error}"));
    let (position, encoded) = newest.encode(next, body).map_err(failed)?;
    if encoded.len() <= MESSAGE_BYTES_MAX {
        return Ok((position, vec![encoded.into()]));
    }
    let count = (encoded.len() + GROWTH_BYTES).div_ceil(MESSAGE_BYTES_MAX);
    let (position, encoded) = newest.encode(next + count as u64 - 1, body).map_err(failed)?;
    let each = encoded.len().div_ceil(count);
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
    let parts = encoded.chunks(each).enumerate().map(|(at, bytes)| {
        let mut part = Vec::with_capacity(HEAD_BYTES + bytes.len());
        part.push(PART);
        part.extend_from_slice(&number(count));
        part.extend_from_slice(&number(at));
        part.extend_from_slice(&position.hash);
        part.extend_from_slice(bytes);
        part.into()
    });
    Ok((position, parts.collect()))
}

/// Is `message` the last one of the entry with this hash?
pub(super) fn ends(message: &[u8], hash: &[u8; 32]) -> bool {
    match Part::read(message) {
        Some(part) => part.hash == hash && part.number + 1 == part.count,
        None => Sha256::digest(message).as_slice() == hash,
    }
}

struct Part<'a> {
    count: u32,
    number: u32,
    hash: &'a [u8; 32],
    bytes: &'a [u8],
}

impl<'a> Part<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let (first, rest) = message.split_first()?;
        let (count, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (hash, bytes) = rest.split_first_chunk()?;
        let (count, number) = (u32::from_be_bytes(*count), u32::from_be_bytes(*number));
        (*first == PART && number < count).then_some(Self { count, number, hash, bytes })
    }
}

/// Puts entries together as their messages come.
#[derive(Default)]
pub(super) struct Assembly {
    bytes: Vec<u8>,
    hash: [u8; 32],
    /// The number of the part that comes next; 0 when there is none.
    next: u32,
}

impl Assembly {
    /// Takes the next message of the stream. Gives an encoded entry when it is the last one of it.
    pub(super) fn take(&mut self, message: Bytes) -> Option<Bytes> {
        let Some(part) = Part::read(&message) else {
            self.next = 0;
            return Some(message);
        };
        if part.number == 0 {
            self.bytes.clear();
            self.hash = *part.hash;
        } else if part.number != self.next || *part.hash != self.hash {
            self.next = 0;
            return None;
        }
        self.bytes.extend_from_slice(part.bytes);
        self.next = part.number + 1;
        if self.next < part.count {
            return None;
        }
        self.next = 0;
        Some(std::mem::take(&mut self.bytes).into())
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use agentsvc_components::kernel::record::{Op, Space};

    use super::*;

    /// A step whose record does not compress.
    fn body(bytes: usize) -> Body<'static> {
        let mut random = 1_u64;
        let value = std::iter::repeat_with(|| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 56) as u8
        });
        let op = Op { space: Space::Content, key: b"k".to_vec(), value: Some(value.take(bytes).collect()) };
        Body::Step { step: None, ops: Cow::Owned(vec![op]), erased: Cow::Owned(Vec::new()) }
    }

    #[test]
    fn what_is_cut_comes_together_again_at_its_last_message() {
        for bytes in [10, MESSAGE_BYTES_MAX - 200, MESSAGE_BYTES_MAX, 3 * MESSAGE_BYTES_MAX + 5] {
            let before = Position { epoch: 3, index: 6, hash: [7; 32], ..Position::default() };
            let body = body(bytes);
            let (position, messages) = cut(&before, 9, &body).unwrap();
            assert_eq!(position.index, 8 + messages.len() as u64);
            assert!(messages.iter().all(|message| message.len() <= MESSAGE_BYTES_MAX + HEAD_BYTES), "{bytes}");
            let is_last: Vec<bool> = messages.iter().map(|message| ends(message, &position.hash)).collect();
            assert_eq!(is_last.iter().filter(|last| **last).count(), 1);
            assert!(is_last[messages.len() - 1] && !ends(&messages[0], &[1; 32]));
            let mut assembly = Assembly::default();
            let mut whole: Vec<_> = messages.iter().filter_map(|message| assembly.take(message.clone())).collect();
            assert_eq!(whole.len(), 1);
            let read = before.accept(position.index, &whole.remove(0)).unwrap().unwrap();
            assert_eq!((read.position, read.body), (position, body));
        }
    }

    #[test]
    fn an_entry_of_which_a_part_is_missing_is_void_and_the_next_one_is_not() {
        let (_, messages) = cut(&Position::default(), 1, &body(3 * MESSAGE_BYTES_MAX)).unwrap();
        let (_, other) = cut(&Position::default(), 1, &Body::Close).unwrap();
        for missing in 0..messages.len() {
            let mut assembly = Assembly::default();
            let mut left = messages.clone();
            left.remove(missing);
            assert!(left.into_iter().all(|message| assembly.take(message).is_none()), "without part {missing}");
            assert_eq!(assembly.take(other[0].clone()), Some(other[0].clone()));
        }
        let mut assembly = Assembly::default();
        assert_eq!(assembly.take(messages[0].clone()), None);
        assert!(assembly.take(other[0].clone()).is_some(), "in between");
        assert!(messages[1..].iter().all(|message| assembly.take(message.clone()).is_none()));
    }
}
