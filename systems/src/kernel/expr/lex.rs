//! From a text to tokens, and what tells dialects apart.

use agentsvc_components::Timestamp;

use super::ast::{Pattern, Term};
use super::error::Error;
use super::pattern;

/// What one dialect has of the language, and how it words mistakes.
pub(crate) struct Dialect {
    /// Words that name no field, in lower case; they may be written in any case.
    pub(crate) keywords: &'static [&'static str],
    /// What words have in them besides letters, digits and `_`; not at their beginning.
    pub(crate) in_words: &'static [char],
    /// Every mark, longer ones before those that they begin with.
    pub(crate) marks: &'static [&'static str],
    /// The literal that is no text in quotes and with which something begins; `None` when it begins with none.
    pub(crate) literal: fn(&str) -> Option<Lexed>,
    /// The value that a keyword stands for, or why it stands for none; `None` for other words.
    pub(crate) constant: fn(&str) -> Option<Result<Term, &'static str>>,
    /// All values are texts, those that look like numbers are compared as numbers, and a test always compares.
    /// Otherwise values have types, and what is compared is of one type.
    pub(crate) is_loose: bool,
    /// Bounds.
    pub(crate) limits: Limits,
    /// What is said about mistakes.
    pub(crate) messages: Messages,
}

/// Bounds of a dialect.
pub(crate) struct Limits {
    /// Conditions and sums; in a loose dialect only those that stand in each other.
    pub(crate) conditions: usize,
    /// Values of one `in`.
    pub(crate) choices: usize,
    /// Bytes of a glob.
    pub(crate) glob_bytes: usize,
    /// Size of all regular expressions of a text: about 4 for each character and set of characters, 1,024 for a set as
    /// large as `\w`, and that as often as it is repeated by a count.
    pub(crate) patterns: usize,
}

/// What a dialect says about mistakes.
pub(crate) struct Messages {
    /// A character that begins nothing.
    pub(crate) stray: fn(char) -> String,
    /// A text whose quote is not closed.
    pub(crate) unclosed: fn(char) -> String,
    /// A character behind a backslash that does not stand there.
    pub(crate) escape: &'static str,
    /// More than [`Limits::conditions`] of these.
    pub(crate) conditions: &'static str,
    /// Where a name is expected.
    pub(crate) name: &'static str,
    /// Where a value is expected.
    pub(crate) value: &'static str,
    /// Where a test of a value is expected.
    pub(crate) test: &'static str,
    /// Stands around a mark or keyword that is expected.
    pub(crate) quote: char,
    /// Something was expected and the token found, or the end.
    pub(crate) expected: fn(&str, Option<&Token>) -> String,
}

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A word: a keyword or a name, as it was written.
    Word(String),
    /// A number.
    Number(f64),
    /// A text in quotes.
    Text(String),
    /// A point in time.
    Time(Timestamp),
    /// Milliseconds.
    Duration(i64),
    /// A regular expression.
    Pattern(Pattern),
    /// One of the dialect's marks; `==` is `=`.
    Mark(&'static str),
}

/// A token and its bytes, or the byte at fault and why.
pub(crate) type Lexed = Result<(Token, usize), (usize, String)>;

/// A token and the column at which it begins.
pub(crate) type Placed = (usize, Token);

/// The tokens of `text`.
pub(crate) fn tokens(text: &str, dialect: &Dialect) -> Result<Vec<Placed>, Error> {
    let (mut rest, mut column, mut tokens, mut patterns) = (text, 1, Vec::new(), 0);
    loop {
        let token = rest.trim_start();
        column += rest[..rest.len() - token.len()].chars().count();
        let Some(first) = token.chars().next() else { return Ok(tokens) };
        let at = |byte: usize| column + token[..byte].chars().count();
        let (found, bytes) = dialect.token(token, first).map_err(|(byte, why)| Error::new(at(byte), why))?;
        if let Token::Pattern(pattern) = &found {
            patterns += pattern.size;
            if patterns > dialect.limits.patterns {
                return Err(Error::new(column, pattern::TOO_LARGE));
            }
        }
        tokens.push((column, found));
        (column, rest) = (at(bytes), &token[bytes..]);
    }
}

/// How many bytes of `text` are such characters, from its beginning on.
pub(super) fn span(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// Bytes of the quoted text at the start of `text`, both quotes included; `None` when it is not closed.
pub(crate) fn quoted_bytes(text: &str) -> Option<usize> {
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

impl Dialect {
    /// Is it one of the dialect's keywords?
    pub(crate) fn is_keyword(&self, word: &str) -> bool {
        self.keywords.iter().any(|keyword| keyword.eq_ignore_ascii_case(word))
    }

    /// May `c` stand in a word, behind its first character?
    pub(crate) fn goes_on(&self, c: char) -> bool {
        c.is_alphanumeric() || c == '_' || self.in_words.contains(&c)
    }

    /// The word at the start of `text`; empty when there is none.
    pub(crate) fn word<'t>(&self, text: &'t str) -> &'t str {
        let begins = text.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if begins { &text[..span(text, |c| self.goes_on(c))] } else { "" }
    }

    /// The mark at the start of `text`.
    pub(crate) fn mark(&self, text: &str) -> Option<&'static str> {
        self.marks.iter().find(|mark| text.starts_with(**mark)).copied()
    }

    /// The token at the start of `rest`, which begins with `first`.
    fn token(&self, rest: &str, first: char) -> Lexed {
        let word = self.word(rest);
        if !word.is_empty() {
            return Ok((Token::Word(word.to_owned()), word.len()));
        }
        if matches!(first, '"' | '\'') {
            return self.quoted(rest, first);
        }
        if let Some(literal) = (self.literal)(rest) {
            return literal;
        }
        let mark = self.mark(rest).ok_or_else(|| (0, (self.messages.stray)(first)))?;
        Ok((Token::Mark(if mark == "==" { "=" } else { mark }), mark.len()))
    }

    fn quoted(&self, rest: &str, quote: char) -> Lexed {
        let bytes = quoted_bytes(rest);
        let unclosed = || (0, (self.messages.unclosed)(quote));
        if self.is_loose && bytes.is_none() {
            return Err(unclosed());
        }
        let inside = bytes.map_or(rest, |bytes| &rest[..bytes - 1]);
        let (mut text, mut characters) = (String::with_capacity(inside.len()), inside.char_indices().skip(1));
        while let Some((at, c)) = characters.next() {
            text.push(match c {
                '\\' => match characters.next().map(|(_, c)| c) {
                    Some(c @ ('\\' | '"' | '\'')) => c,
                    Some('n') => '\n',
                    Some('r') => '\r',
                    Some('t') => '\t',
                    _ => return Err((at, self.messages.escape.to_owned())),
                },
                c => c,
            });
        }
        bytes.map(|bytes| (Token::Text(text), bytes)).ok_or_else(unclosed)
    }
}
