//! Conditions are checked: what is compared is of one type, and words are words of their field.

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use chrono::DateTime;
use uuid::Uuid;

use super::ast::{At, Comparison, Expr, Literal, Term};
use super::check::path;
use super::error::{QueryError, hint};
use super::plan::{Scalar, Test};
use super::table::Kind;
use super::value::{Type, Value};

/// The condition of a query over `kind`.
pub(super) fn filter(kind: &'static Kind, expr: &Expr) -> Result<Test, QueryError> {
    let negated = |test: Test, negated: bool| if negated { Test::Not(Box::new(test)) } else { test };
    Ok(match expr {
        Expr::And(one, other) => Test::And(Box::new(filter(kind, one)?), Box::new(filter(kind, other)?)),
        Expr::Or(one, other) => Test::Or(Box::new(filter(kind, one)?), Box::new(filter(kind, other)?)),
        Expr::Not(expr) => Test::Not(Box::new(filter(kind, expr)?)),
        Expr::Compare(one, comparison, other) => comparison_of(kind, one, *comparison, other)?,
        Expr::Glob(term, pattern, is_not) => {
            let most = limit::QUERY_GLOB_BYTES_MAX;
            if pattern.node.len() > most {
                return Err(QueryError::new(pattern.column, format!("the glob is longer than {most} bytes")));
            }
            let scalar = text_of(kind, term, "~")?;
            negated(Test::Glob(scalar, pattern.node.clone()), *is_not)
        }
        Expr::Contains(term, part) => Test::Contains(text_of(kind, term, "contains")?, part.node.to_lowercase()),
        Expr::In(term, choices, is_not) => {
            let (scalar, of) = scalar(kind, term)?;
            let choices = choices.iter().map(|choice| literal_as(choice, of)).collect::<Result<_, _>>()?;
            negated(Test::In(scalar, choices), *is_not)
        }
        Expr::IsNull(term, is_not) => negated(Test::IsNull(scalar(kind, term)?.0), *is_not),
        Expr::Holds(term) => match scalar(kind, term)? {
            (scalar, Type::Bool) => Test::Holds(scalar),
            (_, of) => {
                let message = format!("a {} does not say yes or no; compare it with something", of.as_str());
                return Err(QueryError::new(term.column, message));
            }
        },
    })
}

fn text_of(kind: &'static Kind, term: &At<Term>, mark: &str) -> Result<Scalar, QueryError> {
    match scalar(kind, term)? {
        (scalar, Type::Text | Type::Word(_)) => Ok(scalar),
        (_, of) => Err(QueryError::new(term.column, format!("`{mark}` is for texts; this is a {}", of.as_str()))),
    }
}

fn comparison_of(
    kind: &'static Kind,
    one: &At<Term>,
    comparison: Comparison,
    other: &At<Term>,
) -> Result<Test, QueryError> {
    // A written text becomes what it is compared with: a moment, an id, a word.
    let (one, other) = match (&one.node, &other.node) {
        (_, Term::Literal(literal)) => {
            let (scalar, of) = scalar(kind, one)?;
            (scalar, Scalar::Value(literal_as(&At::new(other.column, literal.clone()), of)?))
        }
        (Term::Literal(literal), _) => {
            let (scalar, of) = scalar(kind, other)?;
            (Scalar::Value(literal_as(&At::new(one.column, literal.clone()), of)?), scalar)
        }
        _ => {
            let ((left, of), (right, other_of)) = (scalar(kind, one)?, scalar(kind, other)?);
            if !of.is_like(other_of) {
                let message = format!("a {} cannot be compared with a {}", of.as_str(), other_of.as_str());
                return Err(QueryError::new(other.column, message));
            }
            (left, right)
        }
    };
    Ok(Test::Compare(one, comparison, other))
}

/// A value and its type.
fn scalar(kind: &'static Kind, term: &At<Term>) -> Result<(Scalar, Type), QueryError> {
    Ok(match &term.node {
        Term::Field(name) => {
            let path = path(kind, name, term.column)?;
            let of = path.field.kind;
            (Scalar::Field(path), of)
        }
        Term::Now => (Scalar::Now, Type::Time),
        Term::Literal(literal) => (Scalar::Value(value(literal)), type_of(literal)),
        Term::Sum(one, other, minus) => {
            let ((left, of), (right, other_of)) = (scalar(kind, one)?, scalar(kind, other)?);
            let sum = match (of, other_of, minus) {
                (Type::Number, Type::Number, _) => Type::Number,
                (Type::Duration, Type::Duration, _) | (Type::Time, Type::Time, true) => Type::Duration,
                (Type::Time, Type::Duration, _) | (Type::Duration, Type::Time, false) => Type::Time,
                _ => {
                    let (mark, word) = if *minus { ("-", "from") } else { ("+", "to") };
                    let message = if *minus {
                        format!("`{mark}`: a {} cannot be taken {word} a {}", other_of.as_str(), of.as_str())
                    } else {
                        format!("`{mark}`: a {} cannot be added {word} a {}", other_of.as_str(), of.as_str())
                    };
                    return Err(QueryError::new(other.column, message));
                }
            };
            (Scalar::Sum(Box::new(left), Box::new(right), *minus), sum)
        }
    })
}

const fn type_of(literal: &Literal) -> Type {
    match literal {
        Literal::Bool(_) => Type::Bool,
        Literal::Number(_) => Type::Number,
        Literal::Text(_) => Type::Text,
        Literal::Time(_) => Type::Time,
        Literal::Duration(_) => Type::Duration,
    }
}

/// A written value as it is.
pub(super) fn value(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Bool(it) => Value::Bool(*it),
        Literal::Number(it) => Value::Number(*it),
        Literal::Text(it) => Value::Text(it.clone().into()),
        Literal::Time(it) => Value::Time(Timestamp(*it)),
        Literal::Duration(it) => Value::Duration(*it),
    }
}

/// A written value as a value of the type `of`: a text may stand for a moment or an id.
pub(super) fn literal_as(literal: &At<Literal>, of: Type) -> Result<Value<'static>, QueryError> {
    let column = literal.column;
    let plain = value(&literal.node);
    match (of, &literal.node) {
        (Type::Id, Literal::Text(text)) => {
            Uuid::try_parse(text).map(Value::Id).map_err(|_| QueryError::new(column, format!("`{text}` is not a UUID")))
        }
        (Type::Time, Literal::Text(text)) => DateTime::parse_from_rfc3339(text)
            .map(|time| Value::Time(Timestamp(time.timestamp_millis())))
            .map_err(|_| QueryError::new(column, format!("`{text}` is not a time; write it as 2026-11-22T10:00:00Z"))),
        (Type::Word(words), Literal::Text(text)) => {
            if words.contains(&text.as_str()) {
                return Ok(plain);
            }
            let near = hint(text, words.iter().copied());
            Err(QueryError::new(column, format!("`{text}` is never it; the words are {}{near}", words.join(", "))))
        }
        (of, other) if of.is_like(type_of(other)) => Ok(plain),
        (of, other) => {
            let message = format!("a {} cannot be compared with a {}", of.as_str(), type_of(other).as_str());
            Err(QueryError::new(column, message))
        }
    }
}
