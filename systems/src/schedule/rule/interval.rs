//! Interval syntax: `every 15m`, `in 2h`, `at 2026-12-01T09:00Z`.

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use chrono::DateTime;

use super::error::Error;
use super::field::Word;

const MS_PER_SEC: u64 = 1_000;

/// Units of time with their seconds; the first letter, or the word with or without its `s`.
const UNITS: &[(&str, u64)] = &[("second", 1), ("minute", 60), ("hour", 3_600), ("day", 86_400), ("week", 604_800)];
/// Other spellings in use.
const SHORT_UNITS: &[(&str, u64)] = &[("sec", 1), ("min", 60)];

/// Reads a span such as `15m`, `1h30m` or `5 minutes`; gives milliseconds, at least one second's.
pub(super) fn span(words: &[Word<'_>], after: Word<'_>) -> Result<u64, Error> {
    let end = after.column + after.text.chars().count();
    if words.is_empty() {
        return Err(wrong(end, format!("missing duration after {:?}, for example 15m", after.text)));
    }
    let mut seconds = 0_u64;
    let mut pending: Option<(u64, usize)> = None;
    for (text, column) in words.iter().copied().flat_map(pieces) {
        match (text.parse::<u64>(), pending.take()) {
            (Ok(number), None) => pending = Some((number, column)),
            (Err(_), Some((number, at))) => {
                let unit =
                    unit(text).ok_or_else(|| wrong(column, format!("unknown unit {text:?}; use s, m, h, d or w")))?;
                seconds = number
                    .checked_mul(unit)
                    .and_then(|more| seconds.checked_add(more))
                    .filter(|sum| *sum <= limit::SCHEDULE_SPAN_SECS_MAX)
                    .ok_or_else(|| wrong(at, too_long()))?;
            }
            (Err(_), None) if text.bytes().all(|byte| byte.is_ascii_digit()) => return Err(wrong(column, too_long())),
            (Err(_), None) => return Err(wrong(column, format!("expected a number, found {text:?}"))),
            (Ok(_), Some((_, at))) => return Err(wrong(at, "missing unit; use s, m, h, d or w")),
        }
    }
    if let Some((_, at)) = pending {
        return Err(wrong(at, "missing unit; use s, m, h, d or w"));
    }
    if seconds == 0 {
        return Err(wrong(words[0].column, "the minimum is 1s"));
    }
    Ok(seconds * MS_PER_SEC)
}

fn too_long() -> String {
    format!("the maximum is {} days", limit::SCHEDULE_SPAN_SECS_MAX / 86_400)
}

fn wrong(column: usize, reason: impl Into<String>) -> Error {
    Error::new(column, "interval", reason)
}

/// A word as runs of digits and of other characters, each with its column.
fn pieces(word: Word<'_>) -> impl Iterator<Item = (&str, usize)> {
    let (mut rest, mut column) = (word.text, word.column);
    std::iter::from_fn(move || {
        let is_digit = rest.chars().next()?.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(rest.len());
        let (piece, tail) = rest.split_at(end);
        let at = column;
        column += piece.chars().count();
        rest = tail;
        Some((piece, at))
    })
}

fn unit(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let singular = text.strip_suffix('s').filter(|rest| rest.len() > 1).unwrap_or(&text);
    let all = UNITS.iter().chain(SHORT_UNITS);
    let mut spelled = all.filter(|(word, _)| *word == singular);
    let mut short = UNITS.iter().filter(|(word, _)| text.len() == 1 && word.starts_with(&text));
    spelled.next().or_else(|| short.next()).map(|(_, seconds)| *seconds)
}

/// Reads a moment: RFC 3339, whose seconds may be left out.
pub(super) fn moment(words: &[Word<'_>], after: Word<'_>) -> Result<Timestamp, Error> {
    const PART: &str = "moment";
    let end = after.column + after.text.chars().count();
    let (word, rest) = words.split_first().ok_or_else(|| {
        Error::new(
            end,
            PART,
            "missing timestamp; expected RFC 3339, for example \
            2026-12-01T09:00Z",
        )
    })?;
    if let Some(extra) = rest.first() {
        return Err(Error::new(extra.column, PART, format!("{:?} is too much", extra.text)));
    }
    let bad = || {
        Error::new(
            word.column,
            PART,
            format!(
                "{:?} is not a valid timestamp; expected RFC 3339, for \
        example 2026-12-01T09:00Z",
                word.text
            ),
        )
    };
    // `2026-12-01T09:00` has 16 characters.
    let whole = match (word.text.get(..16), word.text.get(16..)) {
        (Some(minute), Some(zone)) if !zone.starts_with(':') => format!("{minute}:00{zone}"),
        _ => word.text.to_owned(),
    };
    let read = DateTime::parse_from_rfc3339(&whole).map_err(|_| bad())?;
    Ok(Timestamp(read.timestamp_millis()))
}
