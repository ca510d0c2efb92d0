//! From an expression back to a text that each dialect which has its parts reads as the same expression.

use std::fmt::{self, Display, Formatter, Write};

use agentsvc_components::Timestamp;

use super::ast::{At, Comparison, Expr, Literal, Pattern, Term};
use super::literal::UNITS;

impl<T: Display> Display for At<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let not = |negated: bool| if negated { "not " } else { "" };
        match self {
            Self::And(all) => joined(f, all, " and "),
            Self::Or(any) => joined(f, any, " or "),
            Self::Not(expr) => {
                f.write_str("not ")?;
                grouped(f, expr, matches!(**expr, Self::And(_) | Self::Or(_)))
            }
            Self::Compare(one, Comparison::Equal, other) => write!(f, "{one} == {other}"),
            Self::Compare(one, comparison, other) => write!(f, "{one} {} {other}", comparison.as_str()),
            Self::Glob(term, glob, negated) => {
                write!(f, "{term} {}~ ", if *negated { "!" } else { "" })?;
                quoted(f, &glob.node)
            }
            Self::Matches(term, pattern) => write!(f, "{term} matches {pattern}"),
            Self::Contains(term, part) => write!(f, "{term} contains {part}"),
            Self::In(term, choices, negated) => {
                write!(f, "{term} {}in (", not(*negated))?;
                for (at, choice) in choices.iter().enumerate() {
                    write!(f, "{}{choice}", if at == 0 { "" } else { ", " })?;
                }
                f.write_char(')')
            }
            Self::IsNull(term, negated) => write!(f, "{term} is {}null", not(*negated)),
            Self::Holds(term) => term.fmt(f),
        }
    }
}

/// Conditions with a word between them; in parentheses what would be read otherwise without.
fn joined(f: &mut Formatter<'_>, exprs: &[Expr], word: &str) -> fmt::Result {
    for (at, expr) in exprs.iter().enumerate() {
        f.write_str(if at == 0 { "" } else { word })?;
        let is_looser = matches!(expr, Expr::Or(_)) || (word == " and " && matches!(expr, Expr::And(_)));
        grouped(f, expr, is_looser)?;
    }
    Ok(())
}

fn grouped(f: &mut Formatter<'_>, expr: &Expr, in_parentheses: bool) -> fmt::Result {
    if in_parentheses { write!(f, "({expr})") } else { expr.fmt(f) }
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => name.fmt(f),
            Self::Literal(literal) => literal.fmt(f),
            Self::Now => f.write_str("now"),
            Self::Sum(one, other, minus) => write!(f, "{one} {} {other}", if *minus { "-" } else { "+" }),
        }
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(it) => it.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => quoted(f, text),
            Self::Time(ms) => Timestamp(*ms).fmt(f),
            Self::Duration(ms) => duration(f, *ms),
        }
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

pub(crate) fn quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
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

/// `1h30m`: the largest units first.
fn duration(f: &mut Formatter<'_>, ms: i64) -> fmt::Result {
    if ms == 0 {
        return f.write_str("0s");
    }
    if ms < 0 {
        f.write_char('-')?;
    }
    let mut rest = ms.unsigned_abs();
    for (unit, length) in UNITS.into_iter().rev() {
        let length = length.unsigned_abs();
        if rest >= length {
            write!(f, "{}{unit}", rest / length)?;
            rest %= length;
        }
    }
    Ok(())
}
