//! Literals that stand in no quotes: numbers, durations, points in time and patterns.

use agentsvc_components::Timestamp;
use chrono::{DateTime, NaiveDate};

use super::lex::{Dialect, Lexed, Token, span};
use super::pattern::compiled;

/// Units of durations and their milliseconds, longer ones before those that they begin with.
pub(super) const UNITS: [(&str, i64); 6] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];

fn wrong(at: usize, why: &str) -> (usize, String) {
    (at, why.to_owned())
}

/// A number, a duration or a point in time: all begin with a digit.
pub(crate) fn number(rest: &str) -> Lexed {
    if let Some((bytes, time)) = moment(rest) {
        let time = time.ok_or_else(|| wrong(0, "invalid timestamp; expected a form like 2026-11-22T10:00:00Z"))?;
        return Ok((Token::Time(time), bytes));
    }
    let is_word = |at: usize| rest[at..].starts_with(char::is_alphabetic);
    let whole = span(rest, |c| c.is_ascii_digit() || c == '_');
    if is_word(whole) {
        return duration(rest, whole);
    }
    let fraction = rest[whole..].strip_prefix('.').map_or(0, |rest| span(rest, |c| c.is_ascii_digit()));
    let bytes = if fraction > 0 { whole + 1 + fraction } else { whole };
    if is_word(bytes) {
        return Err(wrong(0, "a duration needs whole numbers, such as 1h30m"));
    }
    let number = rest[..bytes].replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite());
    number.map(|number| (Token::Number(number), bytes)).ok_or_else(|| wrong(0, "the number is too large"))
}

/// A duration such as `1h30m`, whose first number has so many digits.
fn duration(rest: &str, digits: usize) -> Lexed {
    let (mut digits, mut total) = (0..digits, 0_i64);
    loop {
        let at = digits.end;
        let unit = &rest[at..][..span(&rest[at..], char::is_alphabetic)];
        let (_, ms) = UNITS
            .into_iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(|| (at, format!("unknown unit `{unit}`; use ms, s, m, h, d or w")))?;
        let part = rest[digits].replace('_', "").parse::<i64>().ok().and_then(|digits| digits.checked_mul(ms));
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(|| wrong(0, "the duration is too long"))?;
        let behind = at + unit.len();
        digits = behind..behind + span(&rest[behind..], |c| c.is_ascii_digit());
        if digits.is_empty() {
            return Ok((Token::Duration(total), behind));
        }
        if !rest[digits.end..].starts_with(char::is_alphabetic) {
            return Err(wrong(digits.end, "missing unit; use ms, s, m, h, d or w"));
        }
    }
}

/// The point in time that `text` begins with, and its bytes: a day, or a day and a time with a zone. `None` when it looks
/// like none; the inner `None` when there is no such time.
fn moment(text: &str) -> Option<(usize, Option<Timestamp>)> {
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
        return Some((10, day.map(|day| Timestamp(day.and_utc().timestamp_millis()))));
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
    Some((end, time.map(|time| Timestamp(time.timestamp_millis()))))
}

/// A regular expression between slashes, with an `i` behind when it ignores case.
pub(crate) fn pattern(rest: &str, dialect: &Dialect) -> Lexed {
    let unclosed = || wrong(0, "missing closing / of the regular expression");
    let (mut source, mut characters) = (String::new(), rest.char_indices().skip(1));
    let end = loop {
        match characters.next().ok_or_else(unclosed)? {
            (at, '/') => break at + 1,
            (_, '\\') => match characters.next().ok_or_else(unclosed)? {
                (_, '/') => source.push('/'),
                (_, c) => source.extend(['\\', c]),
            },
            (_, c) => source.push(c),
        }
    };
    let flags = dialect.word(&rest[end..]);
    if !matches!(flags, "" | "i") {
        return Err((end, format!("unknown flag {flags:?}; the only flag is i (ignore case)")));
    }
    let pattern = compiled(&source, flags == "i", dialect.limits.patterns).map_err(|why| (0, why))?;
    Ok((Token::Pattern(pattern), end + flags.len()))
}
