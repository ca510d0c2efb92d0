//! When a schedule is due: its rule, read from text, and its slots (spec 1, Schedules and Cron jobs).
//!
//! | text | slots |
//! | --- | --- |
//! | `30 9 * * MON-FRI` | minute, hour, day of month, month, day of week |
//! | `15 30 9 * * *` | the same with the second in front |
//! | `@hourly` `@daily` `@midnight` `@weekly` `@monthly` `@yearly` `@annually` | short forms |
//! | `every 15m` | every 15 minutes after the rule was set or the schedule enabled |
//! | `in 2h` | once, so long after that |
//! | `at 2026-12-01T09:00Z` | once, then |
//!
//! A slot is a moment of whole milliseconds; the slots of a rule are fixed, whoever looks at them and when.

mod cron;
mod error;
mod field;
mod interval;
mod next;
mod zone;

pub use cron::Cron;
pub use error::Error;

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use chrono_tz::Tz;

use field::Word;

/// A rule that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The local times that a cron expression names.
    Cron(Cron),
    /// Again and again, each time so many milliseconds later.
    Every(u64),
    /// Once, so many milliseconds after the rule was set.
    In(u64),
    /// Once, at a moment.
    At(Timestamp),
}

impl Rule {
    /// Reads a rule: cron or interval syntax.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > limit::SCHEDULE_RULE_BYTES_MAX {
            let reason = format!("longer than {} bytes", limit::SCHEDULE_RULE_BYTES_MAX);
            return Err(Error::new(1, "expression", reason));
        }
        let words = words(text);
        let Some((first, rest)) = words.split_first() else {
            return Err(Error::new(1, "expression", "it is empty"));
        };
        let is = |word: &str| first.text.eq_ignore_ascii_case(word);
        if is("every") || is("@every") {
            interval::span(rest, *first).map(Self::Every)
        } else if is("in") {
            interval::span(rest, *first).map(Self::In)
        } else if is("at") {
            interval::moment(rest, *first).map(Self::At)
        } else {
            Cron::parse(&words).map(Self::Cron)
        }
    }

    /// The first slot after `after`. `anchor` is when the rule was set, or its schedule enabled: slots of `every` and
    /// `in` are counted from it.
    #[must_use]
    pub fn next(&self, zone: Tz, anchor: Timestamp, after: Timestamp) -> Option<Timestamp> {
        let slot = match self {
            Self::Cron(cron) => next::next(cron, zone, after.0.div_euclid(1_000)).map(|secs| Timestamp(secs * 1_000)),
            Self::Every(ms) => {
                let passed = after.ms_since(anchor) / ms + 1;
                Some(anchor.plus_ms(i64::try_from(passed.checked_mul(*ms)?).ok()?))
            }
            Self::In(ms) => Some(anchor.plus_ms(i64::try_from(*ms).ok()?)),
            Self::At(slot) => Some(*slot),
        };
        // At the end of time, where a damaged record may be, no slot follows.
        slot.filter(|slot| *slot > after)
    }

    /// As [`next`](Self::next), in UTC.
    #[must_use]
    pub fn next_utc(&self, anchor: Timestamp, after: Timestamp) -> Option<Timestamp> {
        self.next(Tz::UTC, anchor, after)
    }

    /// The slots after `after`, at most `count`.
    #[must_use]
    pub fn preview(&self, zone: Tz, anchor: Timestamp, after: Timestamp, count: usize) -> Vec<Timestamp> {
        let next = |slot: &Timestamp| self.next(zone, anchor, *slot);
        std::iter::successors(next(&after), next).take(count).collect()
    }

    /// Of the slots after `after` and not after `now`, all but the newest `kept`: how many, and the last of them. `None`
    /// when there are none, or the rule is none of arithmetic and must be walked.
    pub(super) fn leap(
        &self,
        anchor: Timestamp,
        after: Timestamp,
        now: Timestamp,
        kept: u64,
    ) -> Option<(u64, Timestamp)> {
        let Self::Every(ms) = self else { return None };
        let last = (now.ms_since(anchor) / ms).checked_sub(kept)?;
        let count = last.checked_sub(after.ms_since(anchor) / ms).filter(|count| *count > 0)?;
        Some((count, anchor.plus_ms(i64::try_from(last.checked_mul(*ms)?).ok()?)))
    }
}

/// The words of a text between spaces, each with the column of its first character, counted from 1.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut begun: Option<(usize, usize)> = None;
    for (column, (at, c)) in text.char_indices().enumerate() {
        match (begun, c.is_whitespace()) {
            (None, false) => begun = Some((at, column)),
            (Some((start, first)), true) => {
                words.push(Word { text: &text[start..at], column: first + 1 });
                begun = None;
            }
            _ => {}
        }
    }
    words.extend(begun.map(|(start, first)| Word { text: &text[start..], column: first + 1 }));
    words
}

#[cfg(test)]
mod dst_tests;
#[cfg(test)]
mod tests;
