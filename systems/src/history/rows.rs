//! Keys and records of the history; the table is in `components/src/kernel/record.rs`.

use agentsvc_components::history::{Activity, MinuteRecord};
use agentsvc_components::kernel::record::{Op, Space};

use super::Hour;
use crate::kernel::record::{Error, decode, encode, op, put_content, unknown};
use crate::kernel::restore::Records;

/// The byte that its keys begin with, in both spaces.
pub(crate) const KEY: u8 = b'6';

fn minute_key(minute: i64) -> Vec<u8> {
    [&[KEY][..], &minute.to_be_bytes()].concat()
}

/// The minute, counted from 1970, that a key of the world names.
#[must_use]
pub fn parse_minute(key: &[u8]) -> Option<i64> {
    let minute = key.strip_prefix(&[KEY])?;
    Some(i64::from_be_bytes(minute.try_into().ok()?))
}

pub(super) fn put_minute(minute: i64, number: u64, activity: &Activity) -> Op {
    let record = MinuteRecord { number, activity: activity.clone() };
    op(Space::World, minute_key(minute), Some(encode(&record)))
}

pub(super) fn remove_minute(minute: i64) -> Op {
    op(Space::World, minute_key(minute), None)
}

/// Reads a minute.
pub(super) fn read(records: &mut Records, key: &[u8], value: &[u8]) -> Result<(), Error> {
    let minute = parse_minute(key).ok_or_else(|| unknown(key))?;
    records.push::<(i64, MinuteRecord)>((minute, decode(key, value)?));
    Ok(())
}

/// An hour of a key; hours before 1970 stand with the first.
fn hour_bytes(hour: i64) -> [u8; 8] {
    u64::try_from(hour).unwrap_or(0).to_be_bytes()
}

pub(super) fn put_hour(hour: &Hour) -> Op {
    let key = [&[KEY][..], &hour_bytes(hour.hour), &hour.number.to_be_bytes()].concat();
    put_content(key, &hour.record)
}

/// The keys of the hours from one on and before another, counted from 1970.
#[must_use]
pub fn hour_range(from: i64, to: i64) -> std::ops::Range<Vec<u8>> {
    let key = |hour| [&[KEY][..], &hour_bytes(hour)].concat();
    key(from)..key(to)
}

/// The hour and the number of such a key.
#[must_use]
pub fn parse_hour_key(key: &[u8]) -> Option<(i64, u64)> {
    let (hour, number) = key.strip_prefix(&[KEY])?.split_at_checked(8)?;
    let hour = u64::from_be_bytes(hour.try_into().ok()?);
    Some((i64::try_from(hour).ok()?, u64::from_be_bytes(number.try_into().ok()?)))
}
