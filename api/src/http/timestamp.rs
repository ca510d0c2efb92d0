//! Moments as JSON: RFC 3339 in UTC with `Z` and milliseconds, written without an allocation because every item of
//! every list has one or two.

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use agentsvc_components::Timestamp;
use chrono::{DateTime, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::http::error::Error;

/// The first millisecond that the daemon does not know: 1 January 10000.
const END_MS: i64 = 253_402_300_800_000;

/// The time of day as the machine's clock shows it, from 1970 to the year 9999: what a broken clock shows beyond is the nearest of
/// these, because neither logs nor calendars know more. All of the daemon asks here.
#[must_use]
pub fn now() -> DateTime<Utc> {
    within_calendars(SystemTime::now())
}

/// [`now`] in milliseconds since 1970.
#[must_use]
pub fn timestamp_now() -> Timestamp {
    Timestamp(now().timestamp_millis())
}

fn within_calendars(clock: SystemTime) -> DateTime<Utc> {
    let since = clock.duration_since(UNIX_EPOCH).unwrap_or_default();
    let ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX).min(END_MS - 1);
    DateTime::from_timestamp_millis(ms).unwrap_or_default()
}

/// A moment as the API shows it, such as `2026-11-21T10:55:00.000Z`.
#[derive(Clone, Copy, Debug)]
pub struct Moment(pub Timestamp);

const MS_PER_DAY: i64 = 86_400_000;

/// The moment that the text of the body key `field` means, RFC 3339 such as `2026-11-21T10:55:00Z`.
///
/// # Errors
/// 400 naming the key.
pub(crate) fn parse(field: &str, text: &str) -> Result<Timestamp, Error> {
    let wrong = |_| {
        Error::bad_field(
            field,
            format!(
                "{field}: invalid timestamp; expected RFC 3339, for example \
        2026-11-21T10:55:00Z"
            ),
        )
    };
    DateTime::parse_from_rfc3339(text).map(|moment| Timestamp(moment.timestamp_millis())).map_err(wrong)
}

impl Moment {
    /// Writes the text into `buffer`. `None` for years that need more or fewer than four digits.
    fn write(self, buffer: &mut [u8; 24]) -> Option<&str> {
        let (year, month, day) = civil(self.0.0.div_euclid(MS_PER_DAY));
        if !(0..=9_999).contains(&year) {
            return None;
        }
        let ms = self.0.0.rem_euclid(MS_PER_DAY);
        buffer.copy_from_slice(b"0000-00-00T00:00:00.000Z");
        let mut digits = |at: usize, count: usize, mut value: i64| {
            for place in (at..at + count).rev() {
                buffer[place] = b'0' + (value % 10) as u8;
                value /= 10;
            }
        };
        digits(0, 4, year);
        digits(5, 2, month);
        digits(8, 2, day);
        digits(11, 2, ms / 3_600_000);
        digits(14, 2, ms / 60_000 % 60);
        digits(17, 2, ms / 1_000 % 60);
        digits(20, 3, ms % 1_000);
        std::str::from_utf8(buffer).ok()
    }
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar. Years are counted from
/// March, so that the leap day is the last one, in eras of 400 years, which all have the same number of days.
const fn civil(day: i64) -> (i64, i64, i64) {
    let from_era_zero = day + 719_468;
    let era = from_era_zero.div_euclid(146_097);
    let day_of_era = from_era_zero.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, carry) = if month_from_march < 10 { (month_from_march + 3, 0) } else { (month_from_march - 9, 1) };
    (era * 400 + year_of_era + carry, month, day_of_month)
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.write(&mut [0; 24]) {
            Some(text) => serializer.serialize_str(text),
            None => serializer.collect_str(&self.0),
        }
    }
}

impl JsonSchema for Moment {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_beyond_the_calendars_shows_the_nearest_moment() {
        let shown = |clock: SystemTime| Timestamp(within_calendars(clock).timestamp_millis()).to_string();
        let day = Duration::from_secs(86_400);
        assert_eq!(shown(UNIX_EPOCH - 40_000 * day), "1970-01-01T00:00:00.000Z");
        assert_eq!(shown(UNIX_EPOCH + day), "1970-01-02T00:00:00.000Z");
        for beyond in [253_402_300_800, 9_000_000_000_000, 1 << 60] {
            assert_eq!(shown(UNIX_EPOCH + Duration::from_secs(beyond)), "9999-12-31T23:59:59.999Z");
        }
        assert_eq!(shown(UNIX_EPOCH + 2_932_896 * day), "9999-12-31T00:00:00.000Z");
    }

    #[test]
    fn the_text_is_the_one_of_the_calendar() {
        let written = |ms| serde_json::to_value(Moment(Timestamp(ms))).unwrap();
        assert_eq!(written(0), "1970-01-01T00:00:00.000Z");
        // Steps of a bit less than 11 days pass every month, hour and leap year from 1582 to 2354.
        for step in -13_000..13_000_i64 {
            let ms = step * 934_567_891;
            assert_eq!(written(ms), Timestamp(ms).to_string());
        }
        for ms in [-62_198_755_200_000 * 4, 253_402_300_800_000, i64::MAX, i64::MIN] {
            assert_eq!(written(ms), Timestamp(ms).to_string());
        }
    }
}
