//! Bursts to bytes: `x` and the number, and beside it, one byte longer, which of its fires have left.

use agentsvc_components::record::{BurstLeftRecord, BurstRecord, Op, Space};

use super::{Error, Stored, decode, encode, key, op};

/// What stands behind the number in the key of what has left.
const LEFT: u8 = b'l';

fn burst_key(number: u64) -> Vec<u8> {
    key::bytes(b'x', &number.to_be_bytes())
}

fn left_key(number: u64) -> Vec<u8> {
    let mut key = burst_key(number);
    key.push(LEFT);
    key
}

pub(crate) fn put_burst(record: &BurstRecord) -> Op {
    op(Space::World, burst_key(record.number), Some(encode(record)))
}

pub(crate) fn remove_burst(number: u64) -> Op {
    op(Space::World, burst_key(number), None)
}

pub(crate) fn put_burst_left(record: &BurstLeftRecord) -> Op {
    op(Space::World, left_key(record.number), Some(encode(record)))
}

pub(crate) fn remove_burst_left(number: u64) -> Op {
    op(Space::World, left_key(number), None)
}

/// Reads either of the two; `id` is the key without its kind. `None` for a key that is neither's.
pub(super) fn decode_burst(key: &[u8], id: &[u8], value: &[u8]) -> Option<Result<Stored, Error>> {
    match (id.len(), id.last()) {
        (8, _) => Some(decode(key, value).map(Stored::Burst)),
        (9, Some(&LEFT)) => Some(decode(key, value).map(Stored::BurstLeft)),
        _ => None,
    }
}
