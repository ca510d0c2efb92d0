//! From a text to tokens.

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use chrono::{DateTime, NaiveDate};

use super::error::QueryError;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A word: a keyword or a name, as it was written.
    Word(String),
    /// A number.
    Number(f64),
    /// A text in quotes.
    Text(String),
    /// A moment.
    Time(Timestamp),
    /// Milliseconds.
    Duration(i64),
    /// One of [`MARKS`].
    Mark(&'static str),
}

/// A token and the column at which it begins.
pub(super) type Placed = (usize, Token);

/// Every mark, longer ones before those that they begin with.
const MARKS: [&str; 15] = ["!=", "<=", ">=", "!~", "==", "=", "<", ">", "~", "(", ")", ",", ".", "+", "-"];
/// The mark that stands alone for all fields.
const STAR: &str = "*";

/// Units of durations and their milliseconds, longer ones before those that they begin with.
pub(super) const UNITS: [(&str, i64); 6] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];

/// The tokens of `text`.
pub(super) fn tokens(text: &str) -> Result<Vec<Placed>, QueryError> {
    if text.len() > limit::QUERY_BYTES_MAX {
        return Err(QueryError::new(1, format!("the query is longer than {} bytes", limit::QUERY_BYTES_MAX)));
    }
    let mut lexer = Lexer { rest: text, column: 1 };
    let mut tokens = Vec::new();
    while let Some(placed) = lexer.next()? {
        tokens.push(placed);
    }
    Ok(tokens)
}

/// The milliseconds of a duration as the language writes it, such as `1h30m`; `None` for anything else.
#[must_use]
pub fn duration_ms(text: &str) -> Option<u64> {
    match tokens(text).ok()?.as_slice() {
        [(_, Token::Duration(ms))] => u64::try_from(*ms).ok(),
        _ => None,
    }
}

struct Lexer<'t> {
    rest: &'t str,
    column: usize,
}

impl<'t> Lexer<'t> {
    fn next(&mut self) -> Result<Option<Placed>, QueryError> {
        let blank = self.rest.len() - self.rest.trim_start().len();
        self.take(blank);
        let at = self.column;
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let token = match first {
            '"' | '\'' => self.quoted(first)?,
            '0'..='9' => self.number()?,
            c if c.is_alphabetic() || c == '_' => Token::Word(self.word().to_owned()),
            '*' => {
                self.take(1);
                Token::Mark(STAR)
            }
            other => {
                let mark = MARKS.into_iter().find(|mark| self.rest.starts_with(mark));
                let mark = mark.ok_or_else(|| QueryError::new(at, format!("`{other}` means nothing here")))?;
                self.take(mark.len());
                Token::Mark(if mark == "==" { "=" } else { mark })
            }
        };
        Ok(Some((at, token)))
    }

    /// Takes so many bytes, which end between characters.
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        self.column += taken.chars().count();
        taken
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        self.take(end)
    }

    fn word(&mut self) -> &'t str {
        self.take_while(|c| c.is_alphanumeric() || c == '_')
    }

    fn quoted(&mut self, quote: char) -> Result<Token, QueryError> {
        let at = self.column;
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((place, character)) = characters.next() {
            match character {
                c if c == quote => {
                    self.take(place + 1);
                    return Ok(Token::Text(text));
                }
                '\\' => text.push(match characters.next() {
                    Some((_, 'n')) => '\n',
                    Some((_, 't')) => '\t',
                    Some((_, 'r')) => '\r',
                    Some((_, c @ ('\\' | '"' | '\''))) => c,
                    _ => {
                        let column = at + self.rest[..place].chars().count();
                        return Err(QueryError::new(
                            column,
                            "only \\\\, \\\", \\', \\n, \\r and \\t stand behind a backslash",
                        ));
                    }
                }),
                c => text.push(c),
            }
        }
        Err(QueryError::new(at, format!("the text that begins here has no closing {quote}")))
    }

    /// A number, a duration or a moment: all begin with a digit.
    fn number(&mut self) -> Result<Token, QueryError> {
        let at = self.column;
        if let Some((bytes, time)) = moment(self.rest) {
            self.take(bytes);
            return time.ok_or_else(|| QueryError::new(at, "no such time; write it as 2026-11-22T10:00:00Z"));
        }
        let whole = self.take_while(|c| c.is_ascii_digit() || c == '_');
        if self.rest.starts_with(|c: char| c.is_alphabetic()) {
            return self.duration(at, whole);
        }
        let fraction = self.rest.as_bytes();
        let text = if fraction.first() == Some(&b'.') && fraction.get(1).is_some_and(u8::is_ascii_digit) {
            self.take(1);
            format!("{whole}.{}", self.take_while(|c| c.is_ascii_digit()))
        } else {
            whole.to_owned()
        };
        if self.rest.starts_with(|c: char| c.is_alphabetic()) {
            return Err(QueryError::new(at, "a duration is written in whole numbers, such as 1h30m"));
        }
        let number = text.replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite());
        number.map(Token::Number).ok_or_else(|| QueryError::new(at, "the number is too large"))
    }

    /// The rest of `1h30m`, behind its first digits.
    fn duration(&mut self, at: usize, first: &'t str) -> Result<Token, QueryError> {
        let too_long = || QueryError::new(at, "the duration is too long");
        let (mut digits, mut total) = (first, 0_i64);
        loop {
            let column = self.column;
            let unit = self.take_while(char::is_alphabetic);
            let (_, ms) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(|| {
                QueryError::new(column, format!("`{unit}` is no unit of time; they are ms, s, m, h, d and w"))
            })?;
            let part = digits.replace('_', "").parse::<i64>().ok().and_then(|digits| digits.checked_mul(ms));
            total = part.and_then(|part| total.checked_add(part)).ok_or_else(too_long)?;
            digits = self.take_while(|c| c.is_ascii_digit());
            if digits.is_empty() {
                return Ok(Token::Duration(total));
            }
            if !self.rest.starts_with(char::is_alphabetic) {
                return Err(QueryError::new(self.column, "a unit is missing: ms, s, m, h, d or w"));
            }
        }
    }
}

/// The moment that `text` begins with, and its bytes: a day, or a day and a time with a zone. `None` when it looks like
/// no moment; the inner `None` when there is no such moment.
fn moment(text: &str) -> Option<(usize, Option<Token>)> {
    let bytes = text.as_bytes();
    let shape = b"dddd-dd-dd";
    let is_day = bytes.len() >= shape.len()
        && shape
            .iter()
            .zip(bytes)
            .all(|(shape, byte)| if *shape == b'd' { byte.is_ascii_digit() } else { shape == byte });
    if !is_day {
        return None;
    }
    let with_time = matches!(bytes.get(10), Some(b'T' | b't')) && bytes.get(11).is_some_and(u8::is_ascii_digit);
    if !with_time {
        let day = text[..10].parse::<NaiveDate>().ok().and_then(|day| day.and_hms_opt(0, 0, 0));
        return Some((10, day.map(|day| Token::Time(Timestamp(day.and_utc().timestamp_millis())))));
    }
    let time = bytes[11..].iter().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.')).count();
    let zone = match bytes.get(11 + time) {
        Some(b'Z' | b'z') => 1,
        Some(b'+' | b'-') => {
            1 + bytes[12 + time..].iter().take(5).take_while(|byte| byte.is_ascii_digit() || **byte == b':').count()
        }
        _ => 0,
    };
    let end = 11 + time + zone;
    let time = DateTime::parse_from_rfc3339(&text[..end]).ok();
    Some((end, time.map(|time| Token::Time(Timestamp(time.timestamp_millis())))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> Token {
        let mut tokens = tokens(text).unwrap();
        assert_eq!(tokens.len(), 1, "{text}: {tokens:?}");
        tokens.remove(0).1
    }

    #[test]
    fn literals() {
        assert_eq!(only("1_000.5"), Token::Number(1_000.5));
        assert_eq!(only("1h30m"), Token::Duration(5_400_000));
        assert_eq!(only("250ms"), Token::Duration(250));
        assert_eq!(only("'it''s'".replace("''", "\\'").as_str()), Token::Text("it's".to_owned()));
        assert_eq!(only("2026-11-22"), Token::Time(Timestamp(1_795_305_600_000)));
        assert_eq!(only("2026-11-22T01:00:00.5+01:00"), Token::Time(Timestamp(1_795_305_600_500)));
        assert_eq!(tokens("a!=1").unwrap().len(), 3);
        assert_eq!(tokens("5-3").unwrap().len(), 3);
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, column) in [
            ("a where ü ; 1", 11),
            ("a where \"open", 9),
            ("x = 5min", 6),
            ("x = 1h30", 9),
            ("x = 99999999999999999999h", 5),
            ("x = 2026-13-01", 5),
            ("x = 2026-11-22T25:00:00Z", 5),
            ("x = 1.5h", 5),
            ("x = \"a\\q\"", 7),
        ] {
            assert_eq!(tokens(text).unwrap_err().column, column, "{text}");
        }
        assert!(tokens(&"x".repeat(limit::QUERY_BYTES_MAX + 1)).is_err());
    }
}
