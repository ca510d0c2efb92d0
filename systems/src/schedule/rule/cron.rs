//! A cron expression, and the local times that fit it.

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

use super::error::Error;
use super::field::{DAY, Field, HOUR, Kind, MINUTE, MONTH, SECOND, WEEKDAY, Word};

/// The last year that is looked at.
const YEAR_MAX: i32 = 9_999;
/// Years without a fitting day after which there is none: 29 February may be 8 years off.
const BARREN_YEARS_MAX: i32 = 12;

/// The short forms, and what they stand for.
const SHORT_FORMS: &[(&str, &str)] = &[
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// A cron expression of five or six fields: second (0 when left out), minute, hour, day of month, month, day of week.
///
/// Day and weekday: when both restrict (neither begins with `*` or `?`), a day fits that fits one of them; else it must
/// fit both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cron {
    seconds: u64,
    minutes: u64,
    hours: u32,
    days: u32,
    months: u16,
    weekdays: u8,
    /// The last day of the month fits.
    last_day: bool,
    /// A day that fits one of day and weekday is enough.
    either: bool,
    /// The hour is given by numbers: such a job has its times by the wall clock.
    fixed: bool,
}

impl Cron {
    /// Reads an expression or one of the short forms.
    pub(super) fn parse(words: &[Word<'_>]) -> Result<Self, Error> {
        match words {
            [only] if only.text.starts_with('@') => Self::short_form(*only),
            [minute, rest @ ..] if rest.len() == 4 => {
                Self::fields(Word { text: "0", column: minute.column }, *minute, rest)
            }
            [second, minute, rest @ ..] if rest.len() == 4 => Self::fields(*second, *minute, rest),
            _ => {
                let column = words.get(6).or(words.last()).map_or(1, |word| word.column);
                let reason = format!("a cron expression must have 5 or 6 fields, not {}", words.len());
                Err(Error::new(column, "expression", reason))
            }
        }
    }

    fn short_form(word: Word<'_>) -> Result<Self, Error> {
        let known = SHORT_FORMS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word.text));
        let Some((_, text)) = known else {
            let names: Vec<&str> = SHORT_FORMS.iter().map(|(name, _)| *name).collect();
            let reason = format!("{:?} is none of {}", word.text, names.join(", "));
            return Err(Error::new(word.column, "expression", reason));
        };
        let words: Vec<Word<'_>> = text.split(' ').map(|text| Word { text, column: word.column }).collect();
        Self::parse(&words)
    }

    fn fields(second: Word<'_>, minute: Word<'_>, rest: &[Word<'_>]) -> Result<Self, Error> {
        let read = |kind: &Kind, at: usize| kind.parse(rest[at]);
        let (second, minute) = (SECOND.parse(second)?, MINUTE.parse(minute)?);
        let (hour, day, month, weekday) = (read(&HOUR, 0)?, read(&DAY, 1)?, read(&MONTH, 2)?, read(&WEEKDAY, 3)?);
        let cron = Self::of([second, minute, hour, day, month, weekday]);
        if !cron.has_days() {
            return Err(Error::new(rest[1].column, DAY.name, "none of these months has that day"));
        }
        Ok(cron)
    }

    fn of([second, minute, hour, day, month, weekday]: [Field; 6]) -> Self {
        Self {
            seconds: second.bits,
            minutes: minute.bits,
            hours: hour.bits as u32,
            days: day.bits as u32,
            months: month.bits as u16,
            weekdays: weekday.bits as u8,
            last_day: day.last,
            either: !day.star && !weekday.star,
            fixed: !hour.wild,
        }
    }

    /// Does any day fit? 30 February does not.
    fn has_days(&self) -> bool {
        let months = (1_u32..).zip([31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]);
        let first = self.days.trailing_zeros();
        self.last_day
            || self.either
            || months.into_iter().any(|(month, days)| self.months & (1 << month) != 0 && first <= days)
    }

    /// Has it its times by the wall clock, its hour being given by numbers?
    pub(super) const fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// The first local time that fits and is not before `from`; `None` when the calendar ends before.
    pub(super) fn at_or_after(&self, from: NaiveDateTime) -> Option<NaiveDateTime> {
        let from = match from.nanosecond() {
            0 => from,
            _ => from.with_nanosecond(0)?.checked_add_signed(chrono::TimeDelta::seconds(1))?,
        };
        if self.fits_day(from.date())
            && let Some(time) = self.time_from(from.time())
        {
            return Some(from.date().and_time(time));
        }
        let day = self.day_from(from.date().succ_opt()?)?;
        Some(day.and_time(self.time_from(NaiveTime::MIN)?))
    }

    fn fits_day(&self, date: NaiveDate) -> bool {
        self.months & (1 << date.month()) != 0 && self.fits_in_month(date)
    }

    fn fits_in_month(&self, date: NaiveDate) -> bool {
        let is_last = || self.last_day && date.succ_opt().is_none_or(|next| next.day() == 1);
        let day = self.days & (1 << date.day()) != 0 || is_last();
        let weekday = self.weekdays & (1 << date.weekday().num_days_from_sunday()) != 0;
        if self.either { day || weekday } else { day && weekday }
    }

    fn day_from(&self, first: NaiveDate) -> Option<NaiveDate> {
        let mut date = first;
        while date.year() <= YEAR_MAX && date.year() - first.year() <= BARREN_YEARS_MAX {
            if self.months & (1 << date.month()) == 0 {
                let (year, month) = (date.year(), date.month());
                date = NaiveDate::from_ymd_opt(year + i32::from(month == 12), month % 12 + 1, 1)?;
            } else if self.fits_in_month(date) {
                return Some(date);
            } else {
                date = date.succ_opt()?;
            }
        }
        None
    }

    /// The first time of day that fits and is not before `from`.
    fn time_from(&self, from: NaiveTime) -> Option<NaiveTime> {
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        let fits = |bits: u64, value: u32| bits & (1 << value) != 0;
        let hours = u64::from(self.hours);
        if fits(hours, hour) {
            if fits(self.minutes, minute)
                && let Some(second) = bit_from(self.seconds, second)
            {
                return NaiveTime::from_hms_opt(hour, minute, second);
            }
            if let Some(minute) = bit_from(self.minutes, minute + 1) {
                return NaiveTime::from_hms_opt(hour, minute, bit_from(self.seconds, 0)?);
            }
        }
        let hour = bit_from(hours, hour + 1)?;
        NaiveTime::from_hms_opt(hour, bit_from(self.minutes, 0)?, bit_from(self.seconds, 0)?)
    }
}

/// The lowest bit that is set at `from` or above it.
fn bit_from(bits: u64, from: u32) -> Option<u32> {
    let rest = bits.checked_shr(from)?;
    (rest != 0).then(|| from + rest.trailing_zeros())
}
