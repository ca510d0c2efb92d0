//! From a query back to a text: what it says when it is read again is the same query.

use std::fmt::{self, Display, Formatter};

use agentsvc_components::Timestamp;

use super::ast::{At, Column, Expr, Literal, Name, Query, SortKey, Term};
use super::lex::UNITS;

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.node)?;
        if let Some(filter) = &self.filter {
            write!(f, " where {filter}")?;
        }
        clause(f, " group by ", &self.group)?;
        clause(f, " select ", &self.columns)?;
        clause(f, " sort by ", &self.sort)?;
        self.limit.as_ref().map_or(Ok(()), |limit| write!(f, " limit {}", limit.node))
    }
}

fn clause<T: Display>(f: &mut Formatter<'_>, word: &str, items: &[T]) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        f.write_str(if at == 0 { word } else { ", " })?;
        item.fmt(f)?;
    }
    Ok(())
}

impl<T: Display> Display for At<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

impl Display for Column {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Field(name) => name.fmt(f),
            Self::Sum(aggregate, None) => f.write_str(aggregate.as_str()),
            Self::Sum(aggregate, Some(name)) => write!(f, "{}({name})", aggregate.as_str()),
        }
    }
}

impl Display for SortKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.by, if self.descending { " desc" } else { "" })
    }
}

/// How closely a condition holds together: what is looser stands in brackets within it.
const fn tightness(expr: &Expr) -> u8 {
    match expr {
        Expr::Or(..) => 0,
        Expr::And(..) => 1,
        Expr::Not(_) => 2,
        _ => 3,
    }
}

fn inner(f: &mut Formatter<'_>, expr: &Expr, at_least: u8) -> fmt::Result {
    if tightness(expr) < at_least { write!(f, "({expr})") } else { expr.fmt(f) }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let not = |negated: bool| if negated { "not " } else { "" };
        match self {
            // On the left of its like no brackets are needed: `a or b or c` is read from the left.
            Self::Or(one, other) => {
                inner(f, one, 0)?;
                f.write_str(" or ")?;
                inner(f, other, 1)
            }
            Self::And(one, other) => {
                inner(f, one, 1)?;
                f.write_str(" and ")?;
                inner(f, other, 2)
            }
            Self::Not(expr) => {
                f.write_str("not ")?;
                inner(f, expr, 2)
            }
            Self::Compare(one, comparison, other) => write!(f, "{one} {} {other}", comparison.as_str()),
            Self::Glob(term, glob, negated) => {
                write!(f, "{term} {}~ ", if *negated { "!" } else { "" })?;
                quoted(f, &glob.node)
            }
            Self::Contains(term, text) => {
                write!(f, "{term} contains ")?;
                quoted(f, &text.node)
            }
            Self::In(term, choices, negated) => {
                write!(f, "{term} {}in", not(*negated))?;
                clause(f, " (", choices)?;
                f.write_str(")")
            }
            Self::IsNull(term, negated) => write!(f, "{term} is {}null", not(*negated)),
            Self::Holds(term) => term.fmt(f),
        }
    }
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

fn quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}

/// `1h30m`: the largest units first.
fn duration(f: &mut Formatter<'_>, ms: i64) -> fmt::Result {
    if ms == 0 {
        return f.write_str("0s");
    }
    if ms < 0 {
        f.write_str("-")?;
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
