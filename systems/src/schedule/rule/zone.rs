//! From local times to moments and back, across the changes of a zone's clocks.
//!
//! A change forward leaves a *gap* of local times that do not exist; a change back makes an *overlap* of local times
//! that come twice.

use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::Tz;

/// Seconds beyond which no zone was ever ahead of or behind UTC.
const OFFSET_SECS_MAX: i64 = 17 * 3_600;
/// How finely a stretch of time is looked through for changes of the clocks.
const PROBE_SECS: i64 = 6 * 3_600;

/// Seconds that the zone is ahead of UTC at `moment` (seconds since 1970).
pub(super) fn offset(zone: Tz, moment: i64) -> i64 {
    let utc = DateTime::from_timestamp(moment, 0).unwrap_or_default().naive_utc();
    i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc())
}

/// The local time at `moment`.
pub(super) fn local(zone: Tz, moment: i64) -> NaiveDateTime {
    as_local(moment + offset(zone, moment))
}

/// The local time that is `seconds` after the beginning of 1970.
pub(super) fn as_local(seconds: i64) -> NaiveDateTime {
    DateTime::from_timestamp(seconds, 0).unwrap_or_default().naive_utc()
}

/// Where a local time falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It comes once.
    Once(i64),
    /// It comes twice: its first moment, and the first local time after the overlap.
    Twice(i64, NaiveDateTime),
    /// It does not exist; the first moment after the gap.
    Never(i64),
}

/// Finds a local time.
pub(super) fn place(zone: Tz, time: NaiveDateTime) -> Place {
    let seconds = time.and_utc().timestamp();
    let moment = |offset: &<Tz as TimeZone>::Offset| seconds - i64::from(offset.fix().local_minus_utc());
    match zone.offset_from_local_datetime(&time) {
        LocalResult::Single(offset) => Place::Once(moment(&offset)),
        LocalResult::Ambiguous(a, b) => {
            let (first, second) = (moment(&a).min(moment(&b)), moment(&a).max(moment(&b)));
            let before = offset(zone, first);
            let change = first_where(first, second, |at| offset(zone, at) != before);
            Place::Twice(first, as_local(change + before))
        }
        LocalResult::None => {
            let (low, high) = (seconds - OFFSET_SECS_MAX, seconds + OFFSET_SECS_MAX);
            Place::Never(first_where(low, high, |at| local(zone, at) >= time))
        }
    }
}

/// The first moment after `from` and not after `to` at which the offset is another than at `from`. Two changes within
/// [`PROBE_SECS`] that cancel each other are not seen.
pub(super) fn first_change(zone: Tz, from: i64, to: i64) -> Option<i64> {
    let before = offset(zone, from);
    let mut low = from;
    while low < to {
        let high = to.min(low + PROBE_SECS);
        if offset(zone, high) != before {
            return Some(first_where(low, high, |at| offset(zone, at) != before));
        }
        low = high;
    }
    None
}

/// The first of `low + 1 ..= high` for which `is` holds; it holds for `high`, and from its first one on.
fn first_where(low: i64, high: i64, is: impl Fn(i64) -> bool) -> i64 {
    let (mut low, mut high) = (low, high);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// A day and more: what no offset bridges.
pub(super) const FAR: TimeDelta = TimeDelta::hours(48);
