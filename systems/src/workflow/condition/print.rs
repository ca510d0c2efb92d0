//! A condition in one spelling. Reading it gives the same condition again.

use std::fmt::{self, Display, Formatter, Write};

use super::{Condition, Operand, Operator, Pattern, Test};

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bare(text) => quoted(f, text),
            Self::Test(test) => test.fmt(f),
        }
    }
}

impl Display for Test {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(tests) => joined(f, tests, " or ", |test| matches!(test, Self::Any(_))),
            Self::All(tests) => joined(f, tests, " and ", |test| matches!(test, Self::Any(_) | Self::All(_))),
            Self::Not(test) => {
                f.write_str("not ")?;
                grouped(f, test, matches!(**test, Self::Any(_) | Self::All(_)))
            }
            Self::Compare(left, operator, right) => write!(f, "{left} {operator} {right}"),
            Self::Matches(left, pattern) => write!(f, "{left} matches {pattern}"),
        }
    }
}

/// Tests with a word between them; in parentheses what would be read otherwise without.
fn joined(f: &mut Formatter<'_>, tests: &[Test], word: &str, in_parentheses: fn(&Test) -> bool) -> fmt::Result {
    for (at, test) in tests.iter().enumerate() {
        f.write_str(if at == 0 { "" } else { word })?;
        grouped(f, test, in_parentheses(test))?;
    }
    Ok(())
}

fn grouped(f: &mut Formatter<'_>, test: &Test, in_parentheses: bool) -> fmt::Result {
    if in_parentheses { write!(f, "({test})") } else { test.fmt(f) }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output => f.write_str("output"),
            Self::Input => f.write_str("input"),
            Self::Variable(name) => f.write_str(name),
            Self::Text(text) => quoted(f, text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

fn quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '\\' | '"' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

impl Display for Operator {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Contains => "contains",
            Self::Equal => "==",
            Self::Differs => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        })
    }
}

impl Display for Pattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('/')?;
        let mut escaped = false;
        for c in self.source.chars() {
            if c == '/' && !escaped {
                f.write_char('\\')?;
            }
            f.write_char(c)?;
            escaped = c == '\\' && !escaped;
        }
        f.write_str(if self.ignore_case { "/i" } else { "/" })
    }
}
