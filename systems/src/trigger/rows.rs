//! Rows of triggers: waves, and bursts with what has left them: `x` and the number, and beside it, one byte longer, which
//! of its fires have left.

use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::trigger::TriggerState;
use agentsvc_components::trigger::record::{BurstLeftRecord, BurstRecord, TriggerStateRecord, WaveRecord};
use agentsvc_components::turn::record::TurnRecord;
use bevy_ecs::prelude::{Entity, World};

use super::burst::{bursts_so_far, unfold};
use crate::kernel::check::Rows;
use crate::kernel::index::id_of;
use crate::kernel::record::{self, DeferredRecord, Error, decode, encode, key, op, unknown};
use crate::kernel::restore::Records;

/// The byte that the keys of bursts begin with.
pub(super) const BURSTS: u8 = b'x';
/// The byte that the keys of waves begin with.
pub(super) const WAVES: u8 = b'v';
/// What stands behind the number in the key of what has left.
const LEFT: u8 = b'l';

fn burst_key(number: u64) -> Vec<u8> {
    key::bytes(BURSTS, &number.to_be_bytes())
}

fn left_key(number: u64) -> Vec<u8> {
    let mut key = burst_key(number);
    key.push(LEFT);
    key
}

pub(crate) fn put_burst(record: &BurstRecord) -> Op {
    op(Space::World, burst_key(record.number), Some(encode(record)))
}

impl DeferredRecord for BurstRecord {
    fn bytes(&self) -> usize {
        // Four ids and a number for each fire, roughly.
        self.fires.len() * 80
    }

    fn write(self: Box<Self>) -> Op {
        put_burst(&self)
    }
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

/// Reads a burst, or what has left one.
pub(super) fn read_burst(records: &mut Records, key: &[u8], value: &[u8]) -> Result<(), Error> {
    match (key.len(), key.last()) {
        (9, _) => records.push::<BurstRecord>(decode(key, value)?),
        (10, Some(&LEFT)) => records.push::<BurstLeftRecord>(decode(key, value)?),
        _ => return Err(unknown(key)),
    }
    Ok(())
}

pub(super) fn read_wave(records: &mut Records, key: &[u8], value: &[u8]) -> Result<(), Error> {
    records.push::<WaveRecord>(decode(key, value)?);
    Ok(())
}

pub(crate) fn put_wave(record: &WaveRecord) -> Op {
    op(Space::World, key::bytes(WAVES, &record.number.to_be_bytes()), Some(encode(record)))
}

pub(crate) fn remove_wave(number: u64) -> Op {
    op(Space::World, key::bytes(WAVES, &number.to_be_bytes()), None)
}

/// What a trigger did; one that has done nothing yet has no such row.
pub(super) fn state(world: &World, entity: Entity) -> Option<Op> {
    let log = world.get::<TriggerState>(entity)?.0.as_deref()?.clone();
    let (id, bursts) = (id_of(world, entity), bursts_so_far(world));
    Some(record::put(&TriggerStateRecord { id, log, bursts }))
}

/// Puts turns and logs of triggers into the place of the bursts that stand for them, and leaves the number of bursts out
/// that a log knows of: it grows without the trigger.
pub(super) fn unfolded(rows: &mut Rows) -> Result<(), Error> {
    if rows.keys().any(|key| key.first() == Some(&BURSTS)) {
        let mut records = Records::default();
        for (key, row) in rows.iter() {
            records.read(key, row)?;
        }
        unfold(&mut records);
        let turns = records.iter::<TurnRecord>().map(record::put);
        let states = records.iter::<TriggerStateRecord>().map(record::put);
        rows.extend(turns.chain(states).filter_map(|op| Some((op.key, op.value?))));
    }
    for (key, row) in rows.iter_mut().filter(|(key, _)| key.first() == Some(&b'h')) {
        let state: TriggerStateRecord = decode(key, row)?;
        *row = encode(&TriggerStateRecord { bursts: 0, ..state });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use agentsvc_components::event::EventKind;
    use agentsvc_components::trigger::FireLog;
    use agentsvc_components::trigger::record::{BurstFire, TriggerStateRecord};
    use agentsvc_components::{AgentId, SessionId, Timestamp, TriggerId, TurnId};
    use uuid::Uuid;

    use super::*;
    use crate::kernel::record::tests::turn;

    /// The one record that the row is read as.
    fn read<T: Clone + Send + 'static>(key: &[u8], value: &[u8]) -> T {
        let mut records = Records::default();
        records.read(key, value).unwrap();
        assert_eq!(records.len(), 1);
        records.iter::<T>().next().cloned().unwrap()
    }

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
        assert_eq!(read::<BurstRecord>(&op.key, &value), burst(64));
        let one_more = put_burst(&burst(65)).value.unwrap().len() - value.len();
        assert!(one_more <= 80, "{one_more}");
        let op = put_burst_left(&left);
        let value = op.value.unwrap();
        assert_eq!(read::<BurstLeftRecord>(&op.key, &value), left);
        assert!(value.len() < 32);
        let (burst, left) = (remove_burst(258), remove_burst_left(258));
        assert!(burst.key == put_burst(&self::burst(1)).key && left.key == op.key && burst.key != left.key);
        for strange in [&b"x"[..], b"x1234567", b"x12345678m", b"x12345678ll"] {
            assert!(matches!(Records::default().read(strange, &value), Err(Error::Key(_))), "{strange:?}");
        }
    }

    #[test]
    fn a_log_that_was_stored_before_there_were_bursts_knows_of_none() {
        let record = TriggerStateRecord { id: TriggerId(Uuid::nil()), log: FireLog::default(), bursts: 0 };
        let op = record::put(&record);
        let value = op.value.unwrap();
        assert!(!value.windows(6).any(|window| window == b"bursts"));
        assert_eq!(read::<TriggerStateRecord>(&op.key, &value), record);
    }
}
