//! What one scope has spent and reserved, by periods.

use std::collections::BTreeMap;

use agentsvc_components::usage::record::{CallRecord, ScopeUseRecord};
use agentsvc_components::usage::{Period, UsageSum};
use agentsvc_components::{Micros, Timestamp};

use super::rollup::Spent;
use super::{calendar, windows};

/// One scope: what is stored, and what is reserved, which follows from the calls that are out.
pub(super) struct Node {
    pub(super) stored: ScopeUseRecord,
    /// By period and its number; few, for calls do not last long.
    pub(super) reserved: BTreeMap<(Period, i64), Micros>,
}

impl Node {
    pub(super) const fn of(stored: ScopeUseRecord) -> Self {
        Self { stored, reserved: BTreeMap::new() }
    }

    /// What is spent and reserved in the period that the moment `at` is in.
    pub(super) fn spent(&self, period: Period, at: Timestamp) -> Spent {
        let index = calendar::index(period, at);
        let (of, spent) = windows::of(&self.stored, period, at);
        let reserved = self.reserved.get(&(period, index)).map_or(0, |amount| amount.0);
        Spent { index, spent: if of == index { spent } else { 0 }, reserved }
    }

    /// Reserves or releases what is reserved for a call, in the periods that it goes out in.
    pub(super) fn change_reserved(&mut self, call: &CallRecord, change: fn(Micros, Micros) -> Micros) {
        for period in [Period::Daily, Period::Monthly] {
            let key = (period, calendar::index(period, call.at));
            let amount = change(self.reserved.get(&key).copied().unwrap_or_default(), call.reserved);
            if amount.is_zero() {
                self.reserved.remove(&key);
            } else {
                self.reserved.insert(key, amount);
            }
        }
    }

    /// Adds an event.
    pub(super) fn add(&mut self, at: Timestamp, sum: UsageSum) {
        let stored = &mut self.stored;
        stored.total = stored.total.plus(sum);
        stored.last_at = windows::moment(stored.last_at, at);
        windows::turn_to(stored, at);
        if let Some(place) = counted(&mut stored.day, &mut stored.day_cost, calendar::day(at)) {
            *place = place.plus(sum.cost);
        }
        if let Some(place) = counted(&mut stored.month, &mut stored.month_cost, calendar::month(at)) {
            *place = place.plus(sum.cost);
        }
        if let Some(place) = counted(&mut stored.hour, &mut stored.hour_tokens, calendar::hour(at)) {
            *place = place.saturating_add(sum.tokens());
        }
    }
}

/// The place to count at for period `index`; begins anew with a new period. `None` for a period that is over.
fn counted<'a, T: Default>(newest: &mut i64, place: &'a mut T, index: i64) -> Option<&'a mut T> {
    if *newest < index {
        (*newest, *place) = (index, T::default());
    }
    (*newest == index).then_some(place)
}
