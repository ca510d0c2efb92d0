//! The date rules of every usage route (spec 3, Usage, Date-range rules).

use agentsvc_components::kernel::limit;
use chrono::{Datelike, NaiveDate};

use crate::http::error::Error;

/// Days from 0001-01-01, which chrono counts from 1, to 1970-01-01.
const EPOCH_FROM_CE: i64 = 719_163;

/// A range of days, counted from 1970-01-01; `None` is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DayRange {
    /// The first.
    pub(crate) from: Option<i64>,
    /// The last.
    pub(crate) to: Option<i64>,
}

impl DayRange {
    /// Reads `start_date` and `end_date`.
    ///
    /// # Errors
    /// 400 naming the one that is no date; `end_date` when it is before `start_date` (rule 3).
    pub(crate) fn read(start_date: Option<&str>, end_date: Option<&str>) -> Result<Self, Error> {
        let from = start_date.map(|text| day("start_date", text)).transpose()?;
        let to = end_date.map(|text| day("end_date", text)).transpose()?;
        if let (Some(from), Some(to)) = (from, to)
            && to < from
        {
            return Err(Error::bad_field("end_date", "end_date: must not be before start_date"));
        }
        Ok(Self { from, to })
    }

    /// Is no day named?
    pub(crate) const fn is_open(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// Refuses a range of more days than one answer gives.
    ///
    /// # Errors
    /// 400 naming `start_date`.
    pub(crate) fn check_span(&self, today: i64) -> Result<(), Error> {
        let to = self.to.unwrap_or(today);
        match self.from {
            Some(from) if to.saturating_sub(from) >= i64::from(limit::USAGE_DAYS_MAX) => {
                Err(Error::bad_field("start_date", format!("start_date: {}", too_many())))
            }
            _ => Ok(()),
        }
    }
}

/// What to do for more days.
pub(crate) fn too_many() -> String {
    format!("the range can cover at most {} days; GET /api/usage/export returns all of them", limit::USAGE_DAYS_MAX)
}

/// The day of a date `YYYY-MM-DD`, in exactly this form.
fn day(field: &str, text: &str) -> Result<i64, Error> {
    let has_form = text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() });
    let date = has_form.then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()).flatten();
    let date = date.ok_or_else(|| {
        Error::bad_field(
            field,
            format!("{field}: invalid date {:?}; expected a UTC date such as 2026-11-21", clipped(text)),
        )
    })?;
    Ok(i64::from(date.num_days_from_ce()) - EPOCH_FROM_CE)
}

fn clipped(text: &str) -> String {
    text.chars().take(32).collect()
}

/// A day as a date.
pub(crate) fn date_of(day: i64) -> String {
    let days = i32::try_from(day.saturating_add(EPOCH_FROM_CE)).ok();
    days.and_then(NaiveDate::from_num_days_from_ce_opt).map_or_else(|| day.to_string(), |date| date.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_one_form_only() {
        let range = DayRange::read(Some("1970-01-01"), Some("2024-02-29")).unwrap();
        assert_eq!((range.from, range.to.map(date_of)), (Some(0), Some("2024-02-29".to_owned())));
        for text in [
            "",
            "2026-1-5",
            "2026-02-30",
            "20260101",
            "2026-01-01T00:00:00Z",
            " 2026-01-01",
            "2026/01/01",
            "２026-01-01",
            "-026-01-01",
        ] {
            assert!(DayRange::read(Some(text), None).is_err(), "{text}");
        }
        assert!(DayRange::read(Some("2026-01-02"), Some("2026-01-01")).is_err());
        assert!(DayRange::read(Some("2026-01-02"), Some("2026-01-02")).is_ok());
        assert!(DayRange::default().is_open());
    }
}
