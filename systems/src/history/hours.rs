//! The hour that is under way, and the one before it.

use std::collections::BTreeMap;

use bevy_ecs::prelude::{Resource, World};

use agentsvc_components::history::{Activity, HourRecord, MinuteRecord};
use agentsvc_components::kernel::record::Op;

use super::rows;
use crate::kernel::check::Faults;
use crate::kernel::command::{Answer, command};
use crate::kernel::outbox::Outbox;
use crate::kernel::record::Error;
use crate::kernel::restore::Records;

/// Minutes of an hour, and how far a clock may be set back while the newest minute counts on.
const HOUR_MINUTES: i64 = 60;

/// An hour that something happened in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hour {
    /// Its number: that of the hour that was open before, and one.
    pub number: u64,
    /// Which hour, counted from 1970.
    pub hour: i64,
    /// What happened in it.
    pub record: HourRecord,
}

impl Hour {
    /// The newest minute, counted from 1970; `None` in an hour without any.
    fn newest(&self) -> Option<i64> {
        self.record.minutes.last_key_value().map(|(minute, _)| self.minute(*minute))
    }

    const fn minute(&self, of_hour: u8) -> i64 {
        self.hour.saturating_mul(HOUR_MINUTES).saturating_add(of_hour as i64)
    }

    /// The hour is over: one row takes the place of those of its minutes.
    fn closing(&self) -> Vec<Op> {
        let minutes = self.record.minutes.keys().map(|minute| rows::remove_minute(self.minute(*minute)));
        std::iter::once(rows::put_hour(self)).chain(minutes).collect()
    }
}

/// What the world keeps of the past.
#[derive(Resource, Default)]
pub(super) struct History {
    /// The hour that is under way.
    open: Hour,
    /// The one before it, until the next is over: its row may still be on its way to the disk.
    closed: Option<Hour>,
    /// The minute of the open hour that changed in this step and is not written yet.
    dirty: Option<u8>,
    /// The day of the last sweep.
    pub(super) swept: Option<i64>,
}

impl History {
    /// Opens `minute`, counted from 1970, if it is not open. Gives what that stores.
    pub(super) fn turn_to(&mut self, minute: i64) -> Vec<Op> {
        let newest = self.open.newest();
        let is_little_back = |newest: i64| (1..HOUR_MINUTES).contains(&newest.saturating_sub(minute));
        let minute = newest.filter(|newest| is_little_back(*newest)).unwrap_or(minute);
        let (hour, of_hour) = (minute.div_euclid(HOUR_MINUTES), minute.rem_euclid(HOUR_MINUTES) as u8);
        let mut ops = Vec::new();
        if newest.is_none() {
            self.open.hour = hour;
        } else if hour != self.open.hour {
            ops = self.close(hour);
        } else if self.dirty.is_some_and(|dirty| dirty != of_hour) {
            ops.extend(self.store_dirty());
        }
        self.open.record.minutes.entry(of_hour).or_default();
        self.dirty = Some(of_hour);
        ops
    }

    /// The open hour is over, and `next` opens.
    fn close(&mut self, next: i64) -> Vec<Op> {
        self.dirty = None;
        let number = self.open.number.saturating_add(1);
        let over = std::mem::replace(&mut self.open, Hour { number, hour: next, record: HourRecord::default() });
        let ops = over.closing();
        self.closed = Some(over);
        ops
    }

    /// The minute that counts: the one that was opened last.
    pub(super) fn newest(&mut self) -> &mut Activity {
        let minute = self.dirty.unwrap_or_default();
        self.open.record.minutes.entry(minute).or_default()
    }

    /// Is a line of so many turns longer than any that `minute`, counted from 1970, has seen?
    pub(super) fn has_news(&self, minute: i64, waiting: u64) -> bool {
        let newest = self.open.record.minutes.last_key_value();
        self.open.newest().is_none_or(|newest| newest < minute)
            || newest.is_some_and(|(_, newest)| newest.turns_waiting_max < waiting)
    }

    /// The record of the minute that changed.
    pub(super) fn store_dirty(&mut self) -> Option<Op> {
        let minute = self.dirty.take()?;
        let activity = self.open.record.minutes.get(&minute)?;
        Some(rows::put_minute(self.open.minute(minute), self.open.number, activity))
    }

    /// The records of the open hour.
    pub(super) fn rows(&self) -> impl Iterator<Item = Op> {
        let Hour { number, record, .. } = &self.open;
        record.minutes.iter().map(|(minute, activity)| rows::put_minute(self.open.minute(*minute), *number, activity))
    }

    /// Says what does not hold.
    pub(super) fn check(&self, faults: &mut Faults) {
        faults.that(self.open.record.minutes.keys().all(|minute| i64::from(*minute) < HOUR_MINUTES), || {
            "history: an hour has more than 60 minutes".to_owned()
        });
        let before = self.closed.as_ref().map_or(-1, |hour| i64::try_from(hour.number).unwrap_or(i64::MAX));
        faults.that(before < i64::try_from(self.open.number).unwrap_or(i64::MAX), || {
            "history: the hours are not numbered one after the other".to_owned()
        });
    }
}

/// Takes in the minutes that are stored (restore). They are of one hour, unless a damaged store was repaired: then the others are
/// over.
pub(super) fn load(world: &mut World, records: &mut Records) -> Result<(), Error> {
    let mut hours = BTreeMap::<(u64, i64), HourRecord>::new();
    for (minute, MinuteRecord { number, activity }) in records.take::<(i64, MinuteRecord)>() {
        let (hour, of_hour) = (minute.div_euclid(HOUR_MINUTES), minute.rem_euclid(HOUR_MINUTES) as u8);
        hours.entry((number, hour)).or_default().minutes.insert(of_hour, activity);
    }
    if let Some(((number, hour), record)) = hours.pop_last() {
        world.resource_mut::<History>().open = Hour { number, hour, record };
    }
    let over = hours.into_iter().map(|((number, hour), record)| Hour { number, hour, record });
    let ops: Vec<Op> = over.flat_map(|hour| hour.closing()).collect();
    world.resource_mut::<Outbox>().ops.extend(ops);
    Ok(())
}

/// Reads the hours that may not be on the disk yet: the one that is under way, last, and the one before it. Those on the disk with
/// their hour and number are the same.
#[derive(Clone, Copy, Debug)]
pub struct GetOpenHours;

command! {
    read "get_open_hours" GetOpenHours => Vec<Hour>, All, |_, world| {
        let history = world.resource::<History>();
        Answer::read(history.closed.iter().chain([&history.open]).cloned().collect())
    }
}
