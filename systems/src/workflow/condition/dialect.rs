//! The words, marks and literals of conditions, and whether a text is a condition at all.

use agentsvc_components::kernel::limit;

use crate::kernel::expr::{Dialect, Lexed, Limits, Messages, Name, Term, Token, as_number, pattern, quoted_bytes};

/// The dialect of conditions.
pub(super) static DIALECT: Dialect = Dialect {
    keywords: &["and", "or", "not", "contains", "equals", "matches", "input", "output"],
    in_words: &['-', '.'],
    marks: &["==", "!=", "<=", ">=", "<", ">", "(", ")"],
    literal,
    constant: |word| matches!(word, "output" | "input").then(|| Ok(field(word))),
    is_loose: true,
    limits: Limits { conditions: 32, choices: 0, glob_bytes: 0, patterns: limit::WORKFLOW_PATTERNS_SIZE_MAX },
    messages: Messages {
        stray: |c| match c {
            '=' => "use == to compare".to_owned(),
            '!' => "use != or the word not".to_owned(),
            other => format!("unexpected {other:?}; put strings in quotes"),
        },
        unclosed: |_| "missing closing quote".to_owned(),
        escape: "unknown escape; use \\\\, \\\", \\', \\n, \\r or \\t",
        conditions: "nested parentheses and negations",
        name: OPERAND,
        value: OPERAND,
        test: "contains, equals, ==, !=, <, <=, >, >= or matches",
        quote: '\'',
        expected: |expected, found| {
            format!("expected {expected}{}", if found.is_none() { " before the end" } else { "" })
        },
    },
};

const OPERAND: &str = "output, input, a variable, a quoted string or a number";

/// The value called `name`.
pub(super) fn field(name: &str) -> Term {
    Term::Field(Name(vec![name.to_owned()]))
}

/// May no variable be called so?
pub(crate) fn is_keyword(word: &str) -> bool {
    DIALECT.is_keyword(word)
}

/// Has `text` the form of a variable's name?
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && DIALECT.word(text).len() == text.len()
}

fn literal(rest: &str) -> Option<Lexed> {
    match rest.chars().next()? {
        '/' => Some(pattern(rest, &DIALECT)),
        '-' | '0'..='9' => Some(number(rest)),
        _ => None,
    }
}

fn number(rest: &str) -> Lexed {
    let length = rest[1..].find(|c| !DIALECT.goes_on(c)).map_or(rest.len(), |at| at + 1);
    let digits = &rest[..length];
    let value = as_number(digits).ok_or_else(|| (0, format!("{digits:?} is not a number; put strings in quotes")))?;
    Ok((Token::Number(value), length))
}

/// Does `text` hold a comparison outside of quotes? Otherwise it is a bare text. A quote within a word is an
/// apostrophe, and one that is not closed is only a sign.
pub(super) fn compares(text: &str) -> bool {
    let (mut rest, mut in_word) = (text, false);
    while let Some(c) = rest.chars().next() {
        let word = DIALECT.word(rest);
        let step = if matches!(c, '"' | '\'') && !in_word {
            quoted_bytes(rest).unwrap_or(1)
        } else if DIALECT.mark(rest).is_some_and(|mark| !matches!(mark, "(" | ")")) {
            return true;
        } else if in_word || word.is_empty() {
            c.len_utf8()
        } else if ["contains", "equals", "matches"].iter().any(|operator| operator.eq_ignore_ascii_case(word)) {
            return true;
        } else {
            word.len()
        };
        // What ends in a letter goes on as a word when a letter or a quote follows, but `)` or a sign ends it.
        in_word = rest[..step].chars().next_back().is_some_and(|c| DIALECT.goes_on(c));
        rest = &rest[step..];
    }
    false
}
