//! Bursts to bytes: `x` and the number, and beside it, one byte longer, which of its fires have left.

use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::trigger::record::{BurstLeftRecord, BurstRecord};

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

#[cfg(test)]
mod tests {
    use agentsvc_components::event::EventKind;
    use agentsvc_components::trigger::FireLog;
    use agentsvc_components::trigger::record::{BurstFire, TriggerStateRecord};
    use agentsvc_components::{AgentId, SessionId, Timestamp, TriggerId, TurnId};
    use uuid::Uuid;

    use super::super::tests::turn;
    use super::super::{decode_world, put_trigger_state};
    use super::*;

    fn burst(fires: u128) -> BurstRecord {
        let fire = |n| {
            let id = Uuid::from_u128(u128::MAX - n);
            BurstFire(TriggerId(id), TurnId(id), AgentId(id), SessionId(id), 1_000_000, true)
        };
        let fires = (0..fires).map(fire).collect();
        BurstRecord { number: 258, kind: EventKind::Custom, at: Timestamp(8), depth: 2, like: turn(), fires }
    }

    #[test]
    fn a_burst_and_what_has_left_it_come_back_as_they_were_and_each_fire_is_short() {
        let (op, left) = (put_burst(&burst(64)), BurstLeftRecord { number: 258, left: u64::MAX >> 1 });
        let value = op.value.unwrap();
        assert!(matches!(decode_world(&op.key, &value).unwrap(), Stored::Burst(record) if record == burst(64)));
        let one_more = put_burst(&burst(65)).value.unwrap().len() - value.len();
        assert!(one_more <= 80, "{one_more}");
        let op = put_burst_left(&left);
        let value = op.value.unwrap();
        assert!(matches!(decode_world(&op.key, &value).unwrap(), Stored::BurstLeft(record) if record == left));
        assert!(value.len() < 32);
        let (burst, left) = (remove_burst(258), remove_burst_left(258));
        assert!(burst.key == put_burst(&self::burst(1)).key && left.key == op.key && burst.key != left.key);
        for strange in [&b"x"[..], b"x1234567", b"x12345678m", b"x12345678ll"] {
            assert!(matches!(decode_world(strange, &value), Err(Error::Key(_))), "{strange:?}");
        }
    }

    #[test]
    fn a_log_that_was_stored_before_there_were_bursts_knows_of_none() {
        let record = TriggerStateRecord { id: TriggerId(Uuid::nil()), log: FireLog::default(), bursts: 0 };
        let op = put_trigger_state(&record);
        let value = op.value.unwrap();
        assert!(!value.windows(6).any(|window| window == b"bursts"));
        assert!(matches!(decode_world(&op.key, &value).unwrap(), Stored::TriggerState(read) if *read == record));
    }
}
