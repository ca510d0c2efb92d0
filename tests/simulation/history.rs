//! The history counts what happened once: as many model calls, tokens and money as the usage events on the disk have, whatever
//! the clock did and however often the process died.

use agentsvc_components::Micros;
use agentsvc_components::history::{Activity, HourRecord, MinuteRecord};
use agentsvc_components::usage::record::UsageRecord;
use agentsvc_systems::history::{hour_range, parse_hour_key, parse_minute};
use agentsvc_systems::kernel::record;
use agentsvc_systems::usage::parse_active_key;

use super::disk::Disk;

/// On a disk with every step synced.
pub(crate) fn history(disk: &Disk) -> Result<(), String> {
    let unread = |error: record::Error| format!("a row of the history or the usage cannot be read: {error}");
    let mut sum = Activity::default();
    for (key, row) in disk.content.range(hour_range(0, i64::MAX)).filter(|(key, _)| parse_hour_key(key).is_some()) {
        let hour: HourRecord = record::decode(key, row).map_err(unread)?;
        hour.minutes.values().for_each(|minute| sum.add(minute));
    }
    for (key, row) in disk.world.iter().filter(|(key, _)| parse_minute(key).is_some()) {
        sum.add(&record::decode::<MinuteRecord>(key, row).map_err(unread)?.activity);
    }
    let (mut calls, mut tokens, mut cost) = (0, 0, Micros::ZERO);
    let usage = disk.content.range(b"b".to_vec()..b"c".to_vec()).filter(|(key, _)| parse_active_key(key).is_none());
    for (key, row) in usage {
        let event: UsageRecord = record::decode(key, row).map_err(unread)?;
        calls += 1;
        tokens += event.call.usage.input_tokens + event.call.usage.output_tokens;
        cost = cost.plus(event.call.usage.cost);
    }
    let counted = (sum.model_calls, sum.input_tokens + sum.output_tokens, sum.cost);
    if counted == (calls, tokens, cost) {
        return Ok(());
    }
    Err(format!("the history has {counted:?} calls, tokens and money, the usage has {:?}", (calls, tokens, cost)))
}
