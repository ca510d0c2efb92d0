//! Minutes, hours, days and months in UTC, counted from 1970-01-01.

use agentsvc_components::Timestamp;
use agentsvc_components::usage::Period;
use chrono::{DateTime, Datelike, NaiveDate};

/// Milliseconds of a minute.
pub(crate) const MINUTE_MS: i64 = 60_000;
/// Milliseconds of an hour.
pub(crate) const HOUR_MS: i64 = 60 * MINUTE_MS;
/// Milliseconds of a day.
pub(crate) const DAY_MS: i64 = 24 * HOUR_MS;

/// The minute that a moment is in.
pub(crate) const fn minute(at: Timestamp) -> i64 {
    at.0.div_euclid(MINUTE_MS)
}

/// The hour that a moment is in.
pub(crate) const fn hour(at: Timestamp) -> i64 {
    at.0.div_euclid(HOUR_MS)
}

/// The day that a moment is in.
pub(crate) const fn day(at: Timestamp) -> i64 {
    at.0.div_euclid(DAY_MS)
}

/// The month that a moment is in.
pub(crate) fn month(at: Timestamp) -> i64 {
    let date = DateTime::from_timestamp_millis(at.0).unwrap_or_default();
    (i64::from(date.year()) - 1970) * 12 + i64::from(date.month0())
}

/// The first moment of a month.
fn month_start(month: i64) -> Timestamp {
    let year = i32::try_from(1970 + month.div_euclid(12)).unwrap_or(i32::MAX);
    let first = NaiveDate::from_ymd_opt(year, u32::try_from(month.rem_euclid(12)).unwrap_or(0) + 1, 1);
    let midnight = first.and_then(|date| date.and_hms_opt(0, 0, 0));
    Timestamp(midnight.map_or(i64::MAX, |moment| moment.and_utc().timestamp_millis()))
}

/// The number of the period that a moment is in.
pub(crate) fn index(period: Period, at: Timestamp) -> i64 {
    match period {
        Period::Hourly => hour(at),
        Period::Daily => day(at),
        Period::Monthly => month(at),
    }
}

/// When the period after number `index` begins.
pub(crate) fn ends(period: Period, index: i64) -> Timestamp {
    match period {
        Period::Hourly => Timestamp((index + 1).saturating_mul(HOUR_MS)),
        Period::Daily => Timestamp((index + 1).saturating_mul(DAY_MS)),
        Period::Monthly => month_start(index + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp(DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis())
    }

    #[test]
    fn periods_end_at_midnight_and_at_the_first_of_the_month_in_utc() {
        let moment = at("2024-02-28T23:30:00.000Z");
        let end = |period| ends(period, index(period, moment));
        assert_eq!(end(Period::Hourly), at("2024-02-29T00:00:00Z"));
        assert_eq!(end(Period::Daily), at("2024-02-29T00:00:00Z"));
        assert_eq!(end(Period::Monthly), at("2024-03-01T00:00:00Z"));
        assert_eq!(ends(Period::Monthly, month(at("2025-12-31T23:59:59.999Z"))), at("2026-01-01T00:00:00Z"));
        assert_eq!(month(at("1969-12-31T23:59:59Z")), -1);
        assert_eq!(day(Timestamp(-1)), -1);
    }
}
