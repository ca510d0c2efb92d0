//! Keys and records of usage and budgets; the table is in `components/src/kernel/record.rs`.

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::usage::record::{CallRecord, ScopeUseRecord, UsageRecord};
use agentsvc_components::usage::{Bucket, Scope, UsageSum};
use agentsvc_components::{AgentId, Timestamp};
use uuid::Uuid;

use super::families::FamilyUse;
use crate::kernel::record::{Error, VERSION, decode, encode, op, unknown};
use crate::kernel::restore::Records;

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;
/// Stands behind the kind byte of the rows that say who was active on a day; no time of an event begins so.
const ACTIVE: u8 = 255;

fn world(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = vec![kind];
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key
}

fn call_key(attempt: Attempt) -> Vec<u8> {
    world(b'b', &[b"c", attempt.job.0.as_bytes(), &attempt.number.to_be_bytes()])
}

pub(crate) fn put_call(record: &CallRecord) -> Op {
    op(Space::World, call_key(record.attempt()), Some(encode(record)))
}

pub(crate) fn remove_call(attempt: Attempt) -> Op {
    op(Space::World, call_key(attempt), None)
}

/// Reads a call that is out, what a scope has spent, or a sum.
pub(super) fn read(records: &mut Records, key: &[u8], value: &[u8]) -> Result<(), Error> {
    match key.get(1) {
        Some(b'c') => records.push::<CallRecord>(decode(key, value)?),
        Some(b'a' | b'g' | b'u') => records.push::<ScopeUseRecord>(decode(key, value)?),
        Some(b'f') => records.push::<FamilyUse>(FamilyUse(decode(key, value)?)),
        _ => {
            let bucket = parse_bucket(&key[1..]).ok_or_else(|| unknown(key))?;
            records.push::<(Bucket, UsageSum)>((bucket, decode(key, value)?));
        }
    }
    Ok(())
}

fn scope_use_key(scope: Scope) -> Vec<u8> {
    match scope {
        Scope::Global => b"bg".to_vec(),
        Scope::Agent(agent) => world(b'b', &[b"a", agent.0.as_bytes()]),
        Scope::User(user) => world(b'b', &[b"u", user.0.as_bytes()]),
    }
}

pub(crate) fn put_scope_use(record: &ScopeUseRecord) -> Op {
    op(Space::World, scope_use_key(record.scope()), Some(encode(record)))
}

pub(crate) fn remove_scope_use(scope: Scope) -> Op {
    op(Space::World, scope_use_key(scope), None)
}

fn family_use_key(agent: AgentId) -> Vec<u8> {
    world(b'b', &[b"f", agent.0.as_bytes()])
}

/// What the descendants of `agent` have spent.
pub(crate) fn put_family_use(agent: AgentId, record: &ScopeUseRecord) -> Op {
    op(Space::World, family_use_key(agent), Some(encode(record)))
}

pub(crate) fn remove_family_use(agent: AgentId) -> Op {
    op(Space::World, family_use_key(agent), None)
}

fn bucket_key(bucket: &Bucket) -> Vec<u8> {
    match bucket {
        Bucket::Minute(minute) => world(b'b', &[b"n", &minute.to_be_bytes()]),
        Bucket::Hour(hour) => world(b'b', &[b"h", &hour.to_be_bytes()]),
        Bucket::Day(day) => world(b'b', &[b"d", &day.to_be_bytes()]),
        Bucket::Model(provider, model) => world(b'b', &[b"m", provider.as_bytes(), b"\0", model.as_bytes()]),
        Bucket::ModelDay(day, provider, model) => {
            world(b'b', &[b"x", &day.to_be_bytes(), provider.as_bytes(), b"\0", model.as_bytes()])
        }
    }
}

/// The bucket that a key names, without its first byte; `None` for any other key.
fn parse_bucket(key: &[u8]) -> Option<Bucket> {
    let (kind, rest) = key.split_first()?;
    let number = |rest: &[u8]| Some(i64::from_be_bytes(rest.get(..8)?.try_into().ok()?));
    let whole = |rest: &[u8]| number(rest).filter(|_| rest.len() == 8);
    let names = |rest: &[u8]| {
        let (provider, model) = std::str::from_utf8(rest).ok()?.split_once('\0')?;
        Some((Box::<str>::from(provider), Box::<str>::from(model)))
    };
    Some(match kind {
        b'n' => Bucket::Minute(whole(rest)?),
        b'h' => Bucket::Hour(whole(rest)?),
        b'd' => Bucket::Day(whole(rest)?),
        b'm' => names(rest).map(|(provider, model)| Bucket::Model(provider, model))?,
        b'x' => {
            let (provider, model) = names(rest.get(8..)?)?;
            Bucket::ModelDay(number(rest)?, provider, model)
        }
        _ => return None,
    })
}

pub(crate) fn put_usage_sum(bucket: &Bucket, sum: &UsageSum) -> Op {
    op(Space::World, bucket_key(bucket), Some(encode(sum)))
}

pub(crate) fn remove_usage_sum(bucket: &Bucket) -> Op {
    op(Space::World, bucket_key(bucket), None)
}

/// The time of a key; events before 1970 stand with the first.
fn time(at: Timestamp) -> [u8; 8] {
    u64::try_from(at.0).unwrap_or(0).to_be_bytes()
}

/// The key of one event: in the order of time, and the same however often it is written.
#[must_use]
pub fn usage_key(at: Timestamp, attempt: Attempt, number: u16) -> Vec<u8> {
    let (turn, attempt) = (attempt.job.0, attempt.number.to_be_bytes());
    world(b'b', &[&time(at), turn.as_bytes(), &attempt, &number.to_be_bytes()])
}

/// The keys of the events from one moment on and before another.
#[must_use]
pub fn usage_range(from: Timestamp, to: Timestamp) -> std::ops::Range<Vec<u8>> {
    world(b'b', &[&time(from)])..world(b'b', &[&time(to)])
}

pub(crate) fn put_usage(attempt: Attempt, number: u16, record: &UsageRecord) -> Op {
    op(Space::Content, usage_key(record.at, attempt, number), Some(encode(record)))
}

/// The key of the row that says that an agent asked a model on a day, counted from 1970-01-01.
#[must_use]
pub fn active_key(day: i64, agent: AgentId) -> Vec<u8> {
    let day = u64::try_from(day).unwrap_or(0).to_be_bytes();
    world(b'b', &[&[ACTIVE], &day, agent.0.as_bytes()])
}

/// The agent that such a key names.
#[must_use]
pub fn parse_active_key(key: &[u8]) -> Option<AgentId> {
    let id = key.strip_prefix(&[b'b', ACTIVE])?.get(8..)?;
    Uuid::from_slice(id).ok().map(AgentId)
}

pub(crate) fn put_active(at: Timestamp, agent: AgentId) -> Op {
    op(Space::Content, active_key(at.0.div_euclid(DAY_MS), agent), Some(vec![VERSION]))
}

/// Can this row be read? Those that say who was active have no value.
pub(super) fn is_readable(key: &[u8], value: &[u8]) -> Result<(), Error> {
    if parse_active_key(key).is_some() { Ok(()) } else { decode::<UsageRecord>(key, value).map(drop) }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::kernel::id::JobId;

    use super::*;

    #[test]
    fn buckets_are_named_by_their_keys() {
        for bucket in [
            Bucket::Minute(-5),
            Bucket::Hour(7),
            Bucket::Day(20_000),
            Bucket::Model("openai".into(), "org/gpt".into()),
            Bucket::ModelDay(20_000, "p".into(), "".into()),
        ] {
            assert_eq!(parse_bucket(&bucket_key(&bucket)[1..]), Some(bucket));
        }
        assert_eq!(parse_bucket(b"d123"), None);
        assert_eq!(parse_bucket(b"?"), None);
    }

    #[test]
    fn events_stand_in_the_order_of_time_and_before_the_rows_of_days() {
        let attempt = Attempt { job: JobId(Uuid::from_u128(9)), number: 1 };
        let keys = usage_range(Timestamp(1_000), Timestamp(2_000));
        assert!(keys.contains(&usage_key(Timestamp(1_000), attempt, 0)));
        assert!(keys.contains(&usage_key(Timestamp(1_999), attempt, 3)));
        assert!(!keys.contains(&usage_key(Timestamp(2_000), attempt, 0)));
        let agent = AgentId(Uuid::from_u128(5));
        assert!(usage_key(Timestamp(i64::MAX), attempt, 0) < active_key(0, agent));
        assert_eq!(parse_active_key(&active_key(20_000, agent)), Some(agent));
    }
}
