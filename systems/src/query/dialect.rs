//! The words, marks and literals of queries.

use agentsvc_components::kernel::limit;

use crate::kernel::expr::{self, Dialect, Error, Lexed, Limits, Literal, Messages, Placed, Term, Token, hint, number};

/// Words that begin a clause.
const CLAUSES: [&str; 5] = ["where", "group", "select", "sort", "limit"];

/// Words that are no names. No field and no kind is called so; a test sees to it.
pub(super) const KEYWORDS: [&str; 24] = [
    "where", "group", "by", "select", "sort", "order", "limit", "and", "or", "not", "in", "is", "null", "contains",
    "asc", "desc", "now", "true", "false", "count", "sum", "min", "max", "avg",
];

/// The dialect of queries.
pub(super) static DIALECT: Dialect = Dialect {
    keywords: &KEYWORDS,
    in_words: &[],
    marks: &["!=", "<=", ">=", "!~", "==", "=", "<", ">", "~", "(", ")", ",", ".", "+", "-", "*"],
    literal,
    constant,
    is_loose: false,
    limits: Limits {
        conditions: limit::QUERY_CONDITIONS_MAX,
        choices: limit::QUERY_CHOICES_MAX,
        glob_bytes: limit::QUERY_GLOB_BYTES_MAX,
        patterns: 0,
    },
    messages: Messages {
        stray: |c| format!("unexpected `{c}`"),
        unclosed: |quote| format!("missing closing {quote}"),
        escape: "unknown escape; use \\\\, \\\", \\', \\n, \\r or \\t",
        conditions: "conditions",
        name: "a field name",
        value: "a field or a value",
        test: "a comparison, such as `=`",
        quote: '`',
        expected,
    },
};

/// The tokens of a query.
pub(super) fn tokens(text: &str) -> Result<Vec<Placed>, Error> {
    if text.len() > limit::QUERY_BYTES_MAX {
        return Err(Error::new(1, format!("the query is longer than {} bytes", limit::QUERY_BYTES_MAX)));
    }
    expr::tokens(text, &DIALECT)
}

/// The milliseconds of a duration as the language writes it, such as `1h30m`; `None` for anything else.
#[must_use]
pub fn duration_ms(text: &str) -> Option<u64> {
    match tokens(text).ok()?.as_slice() {
        [(_, Token::Duration(ms))] => u64::try_from(*ms).ok(),
        _ => None,
    }
}

fn literal(rest: &str) -> Option<Lexed> {
    rest.starts_with(|c: char| c.is_ascii_digit()).then(|| number(rest))
}

fn constant(word: &str) -> Option<Result<Term, &'static str>> {
    Some(match word {
        "now" => Ok(Term::Now),
        "true" | "false" => Ok(Term::Literal(Literal::Bool(word == "true"))),
        "null" => Err("use `is null` or `is not null` to test for null"),
        _ => return None,
    })
}

fn expected(expected: &str, found: Option<&Token>) -> String {
    let found = match found {
        None => "the query ends here".to_owned(),
        Some(Token::Word(word)) => {
            let words = CLAUSES.into_iter().chain(["and", "or", "by"]);
            let near = hint(word, words.filter(|near| !word.eq_ignore_ascii_case(near)));
            return format!("expected {expected}, found `{word}`{near}");
        }
        Some(Token::Mark(mark)) => format!("found `{mark}`"),
        Some(Token::Number(number)) => format!("found {number}"),
        Some(Token::Text(_)) => "found a text".to_owned(),
        Some(Token::Time(time)) => format!("found {time}"),
        Some(Token::Duration(_)) => "found a duration".to_owned(),
        Some(Token::Pattern(_)) => "found a pattern".to_owned(),
    };
    format!("expected {expected}; {found}")
}

#[cfg(test)]
mod tests {
    use agentsvc_components::Timestamp;

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
