//! One field of a cron expression as a set of bits. The crate `cron` reads its items; what that does not know is
//! rewritten for it: names beside numbers, days of the week from 0, and weeks that end with their Sunday.

use std::str::FromStr;

use cron::{Schedule, TimeUnitSpec};

use super::error::Error;

/// What a field may hold.
pub(super) struct Kind {
    /// Its name, for errors.
    pub(super) name: &'static str,
    /// The smallest value.
    min: u32,
    /// The largest value.
    max: u32,
    /// Words for its values, three letters each; the first stands for `min`.
    words: &'static [&'static str],
    /// The expression in which the crate reads an item of it, in place of the `_`. The neighbours are stars, and all
    /// fields are there, so that an item can be neither a part of another nor two fields.
    frame: &'static str,
    /// The values of that field.
    values: fn(&Schedule) -> u64,
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

pub(super) const SECOND: Kind =
    Kind { name: "second", min: 0, max: 59, words: &[], frame: "_ * * * * * *", values: |all| bits(all.seconds()) };
pub(super) const MINUTE: Kind =
    Kind { name: "minute", frame: "* _ * * * * *", values: |all| bits(all.minutes()), ..SECOND };
pub(super) const HOUR: Kind =
    Kind { name: "hour", max: 23, frame: "* * _ * * * *", values: |all| bits(all.hours()), ..SECOND };
/// Takes `?`, which is another `*`, and `L`, the last day of the month.
pub(super) const DAY: Kind = Kind {
    name: "day of month",
    min: 1,
    max: 31,
    frame: "* * * _ * * *",
    values: |all| bits(all.days_of_month()),
    ..SECOND
};
pub(super) const MONTH: Kind =
    Kind { name: "month", min: 1, max: 12, words: MONTHS, frame: "* * * * _ * *", values: |all| bits(all.months()) };
/// 0 and 7 are both Sunday. The crate counts from 1, Sunday, to 7; as hours they are read from 0 on.
pub(super) const WEEKDAY: Kind = Kind { name: "day of week", max: 7, words: WEEKDAYS, ..HOUR };

/// What a field says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    /// Bit `n` is set when the value `n` fits. Sunday is bit 0.
    pub(super) bits: u64,
    /// It begins with `*` or `?`: it restricts nothing, and of day and weekday the other one decides.
    pub(super) star: bool,
    /// It holds a `*`, a `?` or a step, or every value.
    pub(super) wild: bool,
    /// The last day of the month fits.
    pub(super) last: bool,
}

/// One word of a rule and the column at which it begins, counted from 1.
#[derive(Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) column: usize,
}

impl Kind {
    /// Reads the field.
    pub(super) fn parse(&self, word: Word<'_>) -> Result<Field, Error> {
        let mut field = Field {
            star: word.text.starts_with(['*', '?']),
            wild: word.text.contains(['*', '?', '/']),
            ..Field::default()
        };
        let mut column = word.column;
        for item in word.text.split(',') {
            if self.max == DAY.max && item.eq_ignore_ascii_case("L") {
                field.last = true;
            } else {
                field.bits |= self.item(item).ok_or_else(|| self.wrong(Word { text: item, column }))?;
            }
            column += item.chars().count() + 1;
        }
        if self.max == WEEKDAY.max {
            field.bits = field.bits & !(1 << WEEKDAY.max) | field.bits >> WEEKDAY.max & 1;
        }
        field.wild |= (self.min..=self.max).all(|value| field.bits & (1 << value) != 0);
        Ok(field)
    }

    /// Reads one item of the list: `*`, `7`, `1-5`, `*/2`, `1-20/3`, `5/10` (from 5 to the end).
    fn item(&self, item: &str) -> Option<u64> {
        if item == "*" {
            return Some((1 << (self.max + 1)) - (1 << self.min));
        }
        let schedule = Schedule::from_str(&self.frame.replace('_', &self.rewritten(item)?)).ok()?;
        Some((self.values)(&schedule)).filter(|bits| bits >> self.max <= 1)
    }

    /// An item as the crate reads it.
    fn rewritten(&self, item: &str) -> Option<String> {
        let is_week = self.max == WEEKDAY.max;
        let (range, step) = item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
        let range = match (range, range.split_once('-')) {
            ("*" | "?", _) if is_week => "0-6".to_owned(),
            ("*" | "?", _) => range.to_owned(),
            (_, Some((from, to))) => {
                let (from, to) = (self.value(from)?, self.value(to)?);
                // FRI-SUN: a week may end with its Sunday.
                format!("{from}-{}", if is_week && to == 0 && from > 0 { 7 } else { to })
            }
            // To the end of the week, and not of the day.
            (_, None) if is_week && step.is_some() => format!("{}-7", self.value(range)?),
            (_, None) => self.value(range)?.to_string(),
        };
        match step {
            Some(step) => Some(format!("{range}/{}", number(step).filter(|step| *step <= self.max)?)),
            None => Some(range),
        }
    }

    /// A number, or that for which one of the words stands. The crate knows more words than these.
    fn value(&self, text: &str) -> Option<u32> {
        let named = (self.min..).zip(self.words).find(|(_, word)| word.eq_ignore_ascii_case(text));
        named.map(|(value, _)| value).or_else(|| number(text))
    }

    fn wrong(&self, item: Word<'_>) -> Error {
        let Self { min, max, words, .. } = self;
        let named = match words {
            [first, .., last] => format!(" or {first} to {last}"),
            _ => String::new(),
        };
        let reason =
            format!("{:?} is not valid; use {min} to {max}{named}, rising ranges and steps up to {max}", item.text);
        Error::new(item.column, self.name, reason)
    }
}

/// A number of digits alone.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The values of a field of the crate.
fn bits(values: &impl TimeUnitSpec) -> u64 {
    values.iter().fold(0, |bits, value| bits | 1 << value)
}
