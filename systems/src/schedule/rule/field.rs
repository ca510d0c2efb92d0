//! One field of a cron expression: numbers, names, ranges, steps and lists as a set of bits.

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
    /// Takes `?`, which is another `*`.
    question: bool,
    /// Takes `L`, the last day of the month.
    last: bool,
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const fn plain(name: &'static str, min: u32, max: u32) -> Kind {
    Kind { name, min, max, words: &[], question: false, last: false }
}

pub(super) const SECOND: Kind = plain("second", 0, 59);
pub(super) const MINUTE: Kind = plain("minute", 0, 59);
pub(super) const HOUR: Kind = plain("hour", 0, 23);
pub(super) const DAY: Kind = Kind { question: true, last: true, ..plain("day of month", 1, 31) };
pub(super) const MONTH: Kind = Kind { words: MONTHS, ..plain("month", 1, 12) };
/// 0 and 7 are both Sunday.
pub(super) const WEEKDAY: Kind = Kind { words: WEEKDAYS, question: true, ..plain("day of week", 0, 7) };

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
        for text in word.text.split(',') {
            self.item(Word { text, column }, &mut field)?;
            column += text.chars().count() + 1;
        }
        if self.max == WEEKDAY.max && field.bits & (1 << WEEKDAY.max) != 0 {
            field.bits = field.bits & !(1 << WEEKDAY.max) | 1;
        }
        field.wild |= (self.min..=self.max).all(|value| field.bits & (1 << value) != 0);
        Ok(field)
    }

    /// Reads one item of the list: `*`, `7`, `1-5`, `*/2`, `1-20/3`, `5/10` (from 5 to the end).
    fn item(&self, word: Word<'_>, field: &mut Field) -> Result<(), Error> {
        let (range, step) = match word.text.split_once('/') {
            Some((range, step)) => {
                let column = word.column + range.chars().count() + 1;
                (Word { text: range, ..word }, Some(self.step(Word { text: step, column })?))
            }
            None => (word, None),
        };
        if self.last && range.text.eq_ignore_ascii_case("L") && step.is_none() {
            field.last = true;
            return Ok(());
        }
        let (from, to) = if range.text == "*" || (self.question && range.text == "?") {
            (self.min, if self.max == WEEKDAY.max { 6 } else { self.max })
        } else if let Some((from, to)) = range.text.split_once('-') {
            let column = range.column + from.chars().count() + 1;
            self.range(Word { text: from, ..range }, Word { text: to, column })?
        } else {
            let value = self.value(range)?;
            (value, if step.is_some() { self.max } else { value })
        };
        let mut value = from;
        while value <= to {
            field.bits |= 1 << value;
            value += step.unwrap_or(1);
        }
        Ok(())
    }

    fn range(&self, from: Word<'_>, to: Word<'_>) -> Result<(u32, u32), Error> {
        let (first, mut last) = (self.value(from)?, self.value(to)?);
        // FRI-SUN: a week may end with its Sunday.
        if self.max == WEEKDAY.max && last == 0 && first > 0 {
            last = 7;
        }
        if first > last {
            return Err(self.wrong(from, format!("the range {}-{} ends before it begins", from.text, to.text)));
        }
        Ok((first, last))
    }

    fn step(&self, word: Word<'_>) -> Result<u32, Error> {
        match self.number(word)? {
            0 => Err(self.wrong(word, "a step of 0 never comes")),
            step if step > self.max => Err(self.wrong(word, format!("the step {step} is larger than {}", self.max))),
            step => Ok(step),
        }
    }

    fn value(&self, word: Word<'_>) -> Result<u32, Error> {
        if let Some(at) = self.words.iter().position(|known| known.eq_ignore_ascii_case(word.text)) {
            return Ok(self.min + u32::try_from(at).unwrap_or(0));
        }
        let value = self.number(word)?;
        if value < self.min || value > self.max {
            return Err(self.wrong(word, format!("{value} is not between {} and {}", self.min, self.max)));
        }
        Ok(value)
    }

    fn number(&self, word: Word<'_>) -> Result<u32, Error> {
        if word.text.is_empty() {
            return Err(self.wrong(word, "a value is missing"));
        }
        if let Some(at) = word.text.chars().position(|c| !c.is_ascii_digit()) {
            let rest: String = word.text.chars().skip(at).collect();
            let column = if self.words.is_empty() { word.column + at } else { word.column };
            let shown = if self.words.is_empty() { rest } else { word.text.to_owned() };
            return Err(self.wrong(Word { column, ..word }, format!("{shown:?} is no value of this field")));
        }
        word.text.parse().map_err(|_| self.wrong(word, format!("{} is too large", word.text)))
    }

    fn wrong(&self, word: Word<'_>, reason: impl Into<String>) -> Error {
        Error::new(word.column, self.name, reason)
    }
}
