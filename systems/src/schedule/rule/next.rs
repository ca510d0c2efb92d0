//! The next slot of a cron expression in a zone.
//!
//! An expression whose hour is given by numbers has its times by the wall clock: one that falls into a gap comes at the
//! first moment after it, and one in an overlap comes once, the first time. Any other runs through real time: what does
//! not exist is left out, and what comes twice comes twice.

use chrono::TimeDelta;
use chrono_tz::Tz;

use super::cron::Cron;
use super::zone::{self, FAR, Place};

/// Changes of the clocks that one search passes at most; no zone has more in the years that a search spans.
const CHANGES_MAX: usize = 256;

/// The first slot after `after`; both in seconds since 1970. `None` when the calendar ends before.
pub(super) fn next(cron: &Cron, zone: Tz, after: i64) -> Option<i64> {
    if zone == Tz::UTC {
        return Some(cron.at_or_after(zone::as_local(after + 1))?.and_utc().timestamp());
    }
    if cron.is_fixed() { by_the_wall_clock(cron, zone, after) } else { in_real_time(cron, zone, after) }
}

fn by_the_wall_clock(cron: &Cron, zone: Tz, after: i64) -> Option<i64> {
    let mut from = zone::local(zone, after) + TimeDelta::seconds(1);
    for _ in 0..CHANGES_MAX {
        let time = cron.at_or_after(from)?;
        let (slot, later) = match zone::place(zone, time) {
            Place::Once(slot) | Place::Never(slot) => (slot, time + TimeDelta::seconds(1)),
            Place::Twice(slot, end) => (slot, end),
        };
        if slot > after {
            return Some(slot);
        }
        from = later;
    }
    None
}

fn in_real_time(cron: &Cron, zone: Tz, after: i64) -> Option<i64> {
    let far = FAR.num_seconds();
    let mut from = after + 1;
    for _ in 0..CHANGES_MAX {
        // As long as the offset stays, local time and real time go side by side.
        let offset = zone::offset(zone, from);
        let slot = cron.at_or_after(zone::as_local(from + offset))?.and_utc().timestamp() - offset;
        let near = slot.min(from + far);
        if let Some(change) = zone::first_change(zone, from, near) {
            from = change;
        } else if near == slot {
            return Some(slot);
        } else {
            // In between no local time can fit, whatever the clocks do.
            from = near.max(slot - far);
        }
    }
    None
}
