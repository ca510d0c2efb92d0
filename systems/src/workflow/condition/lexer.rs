//! The words of a condition, and whether a text is one at all.

use regex::RegexBuilder;

use super::{Error, Operator, Pattern};

/// Bytes that one regular expression may need. Larger: refused.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// One word of a condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A word, or a keyword.
    Word(&'a str),
    /// What stood in quotes.
    Text(String),
    /// A number.
    Number(f64),
    /// What stood between slashes.
    Regex(Pattern),
    /// A comparison.
    Operator(Operator),
    /// `(`
    Open,
    /// `)`
    Close,
}

/// The comparisons that are written as words; `matches` takes a regular expression and stands alone.
const WORDS: &[(&str, Operator)] = &[("contains", Operator::Contains), ("equals", Operator::Equal)];
/// The comparisons that are written with signs, longer ones first.
const SIGNS: &[(&str, Operator)] = &[
    ("==", Operator::Equal),
    ("!=", Operator::Differs),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("<", Operator::Less),
    (">", Operator::Greater),
];
/// Words that cannot name a variable.
const KEYWORDS: &[&str] = &["and", "or", "not", "contains", "equals", "matches", "input", "output"];

/// May no variable be called so?
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(word))
}

/// Has `text` the form of a variable's name?
pub(crate) fn is_name(text: &str) -> bool {
    text.chars().next().is_some_and(begins_word) && text.chars().all(goes_on)
}

fn begins_word(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn goes_on(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// The word at the start of `text`; empty when there is none.
fn word(text: &str) -> &str {
    if !text.starts_with(begins_word) {
        return "";
    }
    &text[..text.find(|c| !goes_on(c)).unwrap_or(text.len())]
}

fn operator_word(word: &str) -> Option<Operator> {
    WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, operator)| *operator)
}

fn sign(text: &str) -> Option<(&'static str, Operator)> {
    SIGNS.iter().find(|(sign, _)| text.starts_with(sign)).copied()
}

/// Bytes of the quoted text at the start of `text`, both quotes included; `None` when it is not closed.
fn quoted_bytes(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Does `text` hold a comparison outside of quotes? Otherwise it is a bare text. A quote within a word is an
/// apostrophe, and one that is not closed is only a sign.
pub(super) fn compares(text: &str) -> bool {
    let (mut rest, mut in_word) = (text, false);
    while let Some(c) = rest.chars().next() {
        let found = word(rest);
        let step = if matches!(c, '"' | '\'') && !in_word {
            quoted_bytes(rest).unwrap_or(1)
        } else if sign(rest).is_some() {
            return true;
        } else if in_word || found.is_empty() {
            c.len_utf8()
        } else if operator_word(found).is_some() || found.eq_ignore_ascii_case("matches") {
            return true;
        } else {
            found.len()
        };
        // What ends in a letter goes on as a word when a letter or a quote follows, but `)` or a sign ends it.
        in_word = rest[..step].chars().next_back().is_some_and(goes_on);
        rest = &rest[step..];
    }
    false
}

/// The words of `text` with their places, in bytes from the start.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, Error> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let step = if c.is_whitespace() {
            c.len_utf8()
        } else {
            let (token, step) = token(rest).map_err(|(offset, why)| error(text, at + offset, why))?;
            found.push((at, token));
            step
        };
        at += step;
    }
    Ok(found)
}

/// An error at a place in bytes.
pub(super) fn error(text: &str, at: usize, why: impl Into<String>) -> Error {
    Error { column: text[..at].chars().count() + 1, text: why.into() }
}

/// The word at the start of `rest` and its length in bytes, or where in it something is wrong.
fn token(rest: &str) -> Result<(Token<'_>, usize), (usize, String)> {
    let c = rest.chars().next().unwrap_or(' ');
    let found = word(rest);
    if !found.is_empty() {
        let token = operator_word(found).map_or(Token::Word(found), Token::Operator);
        return Ok((token, found.len()));
    }
    if let Some((sign, operator)) = sign(rest) {
        return Ok((Token::Operator(operator), sign.len()));
    }
    match c {
        '(' => Ok((Token::Open, 1)),
        ')' => Ok((Token::Close, 1)),
        '"' | '\'' => text(rest),
        '/' => regex(rest),
        '-' | '0'..='9' => number(rest),
        '=' => Err((0, "a comparison is written ==".to_owned())),
        '!' => Err((0, "write != or the word not".to_owned())),
        other => Err((0, format!("unexpected {other:?}; texts are put in quotes"))),
    }
}

fn text(rest: &str) -> Result<(Token<'_>, usize), (usize, String)> {
    let length = quoted_bytes(rest).ok_or_else(|| (0, "this quote is not closed".to_owned()))?;
    let mut value = String::with_capacity(length);
    let mut characters = rest[..length - 1].char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        if c != '\\' {
            value.push(c);
            continue;
        }
        value.push(match characters.next().map(|(_, c)| c) {
            Some(c @ ('\\' | '"' | '\'')) => c,
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            _ => return Err((at, "unknown escape; there are \\\\ \\\" \\' \\n \\r \\t".to_owned())),
        });
    }
    Ok((Token::Text(value), length))
}

fn number(rest: &str) -> Result<(Token<'_>, usize), (usize, String)> {
    let length = rest[1..].find(|c| !goes_on(c)).map_or(rest.len(), |at| at + 1);
    let digits = &rest[..length];
    let value = as_number(digits).ok_or_else(|| (0, format!("{digits:?} is not a number; texts are put in quotes")))?;
    Ok((Token::Number(value), length))
}

/// The number that a text is: digits, a point and digits where there is one, a minus before them. Spaces around it do
/// not matter.
pub(super) fn as_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let value: f64 = if digits(whole) && digits(fraction) { text.parse().ok()? } else { return None };
    value.is_finite().then_some(value)
}

fn regex(rest: &str) -> Result<(Token<'_>, usize), (usize, String)> {
    let mut source = String::new();
    let mut characters = rest.char_indices().skip(1);
    let end = loop {
        match characters.next() {
            None => return Err((0, "this regular expression is not closed by /".to_owned())),
            Some((at, '/')) => break at,
            Some((_, '\\')) => match characters.next() {
                Some((_, '/')) => source.push('/'),
                Some((_, c)) => source.extend(['\\', c]),
                None => return Err((0, "this regular expression is not closed by /".to_owned())),
            },
            Some((_, c)) => source.push(c),
        }
    };
    let flags = word(&rest[end + 1..]);
    let ignore_case = match flags {
        "" => false,
        "i" => true,
        _ => return Err((end + 1, format!("unknown flag {flags:?}; there is only i, to ignore case"))),
    };
    let pattern = pattern(&source, ignore_case).map_err(|why| (0, why))?;
    Ok((Token::Regex(pattern), end + 1 + flags.len()))
}

/// Compiles a pattern.
pub(super) fn pattern(source: &str, ignore_case: bool) -> Result<Pattern, String> {
    if source.is_empty() {
        return Err("this regular expression is empty".to_owned());
    }
    let built = RegexBuilder::new(source).case_insensitive(ignore_case).size_limit(REGEX_BYTES_MAX).build();
    let regex = built.map_err(|error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default();
        format!("bad regular expression: {}", last.trim_start_matches("error: "))
    })?;
    Ok(Pattern { source: source.into(), ignore_case, regex })
}
