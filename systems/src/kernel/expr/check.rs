//! From an expression to a test: names become fields, what is compared is of one type, and words are words of their field.

use agentsvc_components::Timestamp;
use chrono::DateTime;
use uuid::Uuid;

use super::ast::{At, Comparison, Expr, Literal, Name, Term};
use super::error::{Error, hint};
use super::eval::{Scalar, Test};
use super::lex::Dialect;
use super::value::{Type, Value};

/// The fields that names mean.
pub(crate) trait Fields {
    /// What a value is read by.
    type Field;

    /// The field called `name`, which stands at `column`, and its type.
    fn field(&self, name: &Name, column: usize) -> Result<(Self::Field, Type), Error>;
}

/// Checks a condition over these fields.
pub(crate) fn check<F: Fields>(dialect: &Dialect, fields: &F, expr: &Expr) -> Result<Test<F::Field>, Error> {
    Check { dialect, fields }.test(expr)
}

struct Check<'a, F> {
    dialect: &'a Dialect,
    fields: &'a F,
}

impl<F: Fields> Check<'_, F> {
    fn test(&self, expr: &Expr) -> Result<Test<F::Field>, Error> {
        let negated = |test, negated| if negated { Test::Not(Box::new(test)) } else { test };
        Ok(match expr {
            Expr::And(all) => Test::And(self.tests(all)?),
            Expr::Or(any) => Test::Or(self.tests(any)?),
            Expr::Not(expr) => Test::Not(Box::new(self.test(expr)?)),
            Expr::Compare(one, comparison, other) if self.dialect.is_loose => {
                Test::CompareLoosely(self.scalar(one)?.0, *comparison, self.scalar(other)?.0)
            }
            Expr::Compare(one, comparison, other) => self.comparison(one, *comparison, other)?,
            Expr::Glob(term, pattern, is_not) => {
                let most = self.dialect.limits.glob_bytes;
                if pattern.node.len() > most {
                    return Err(Error::new(pattern.column, format!("the glob is longer than {most} bytes")));
                }
                negated(Test::Glob(self.text(term, "~")?, pattern.node.clone()), *is_not)
            }
            Expr::Matches(term, pattern) => Test::Matches(self.text(term, "matches")?, pattern.clone()),
            Expr::Contains(term, part) => {
                Test::Contains(self.text(term, "contains")?, self.text(part, "contains")?.folded())
            }
            Expr::In(term, choices, is_not) => {
                let (scalar, of) = self.scalar(term)?;
                let choices = choices.iter().map(|choice| literal_as(choice, of)).collect::<Result<_, _>>()?;
                negated(Test::In(scalar, choices), *is_not)
            }
            Expr::IsNull(term, is_not) => negated(Test::IsNull(self.scalar(term)?.0), *is_not),
            Expr::Holds(term) => match self.scalar(term)? {
                (scalar, Type::Bool) => Test::Holds(scalar),
                (_, of) => {
                    let message = format!("a {} is not a condition; compare it with a value", of.as_str());
                    return Err(Error::new(term.column, message));
                }
            },
        })
    }

    fn tests(&self, exprs: &[Expr]) -> Result<Vec<Test<F::Field>>, Error> {
        exprs.iter().map(|expr| self.test(expr)).collect()
    }

    fn text(&self, term: &At<Term>, mark: &str) -> Result<Scalar<F::Field>, Error> {
        match self.scalar(term)? {
            (scalar, Type::Text | Type::Word(_)) => Ok(scalar),
            (_, of) => Err(Error::new(term.column, format!("`{mark}` needs text, not a {}", of.as_str()))),
        }
    }

    fn comparison(&self, one: &At<Term>, comparison: Comparison, other: &At<Term>) -> Result<Test<F::Field>, Error> {
        // A written text becomes what it is compared with: a time, an id, a word.
        let written = |term: &At<Term>, literal: &Literal, of| {
            literal_as(&At::new(term.column, literal.clone()), of).map(Scalar::Value)
        };
        let (one, other) = match (&one.node, &other.node) {
            (_, Term::Literal(literal)) => {
                let (scalar, of) = self.scalar(one)?;
                (scalar, written(other, literal, of)?)
            }
            (Term::Literal(literal), _) => {
                let (scalar, of) = self.scalar(other)?;
                (written(one, literal, of)?, scalar)
            }
            _ => {
                let ((left, of), (right, other_of)) = (self.scalar(one)?, self.scalar(other)?);
                if !of.is_like(other_of) {
                    return Err(Error::new(other.column, cannot_compare(of, other_of)));
                }
                (left, right)
            }
        };
        Ok(Test::Compare(one, comparison, other))
    }

    /// A value and its type.
    fn scalar(&self, term: &At<Term>) -> Result<(Scalar<F::Field>, Type), Error> {
        Ok(match &term.node {
            Term::Field(name) => {
                let (field, of) = self.fields.field(name, term.column)?;
                (Scalar::Field(field), of)
            }
            Term::Now => (Scalar::Now, Type::Time),
            Term::Literal(Literal::Number(number)) if self.dialect.is_loose => {
                (Scalar::Value(Value::Text(number.to_string().into())), Type::Text)
            }
            Term::Literal(literal) => (Scalar::Value(value(literal)), type_of(literal)),
            Term::Sum(one, other, minus) => {
                let ((left, of), (right, other_of)) = (self.scalar(one)?, self.scalar(other)?);
                let sum = match (of, other_of, minus) {
                    (Type::Number, Type::Number, _) => Type::Number,
                    (Type::Duration, Type::Duration, _) | (Type::Time, Type::Time, true) => Type::Duration,
                    (Type::Time, Type::Duration, _) | (Type::Duration, Type::Time, false) => Type::Time,
                    _ => {
                        let (mark, words) = if *minus { ("-", "taken from") } else { ("+", "added to") };
                        let message = format!("`{mark}`: a {} cannot be {words} a {}", other_of.as_str(), of.as_str());
                        return Err(Error::new(other.column, message));
                    }
                };
                (Scalar::Sum(Box::new(left), Box::new(right), *minus), sum)
            }
        })
    }
}

fn cannot_compare(one: Type, other: Type) -> String {
    format!("a {} cannot be compared with a {}", one.as_str(), other.as_str())
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
fn value(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Bool(it) => Value::Bool(*it),
        Literal::Number(it) => Value::Number(*it),
        Literal::Text(it) => Value::Text(it.clone().into()),
        Literal::Time(it) => Value::Time(Timestamp(*it)),
        Literal::Duration(it) => Value::Duration(*it),
    }
}

/// A written value as a value of the type `of`: a text may stand for a time or an id.
fn literal_as(literal: &At<Literal>, of: Type) -> Result<Value<'static>, Error> {
    let wrong = |message| Error::new(literal.column, message);
    let plain = value(&literal.node);
    match (of, &literal.node) {
        (Type::Id, Literal::Text(text)) => {
            Uuid::try_parse(text).map(Value::Id).map_err(|_| wrong(format!("`{text}` is not a UUID")))
        }
        (Type::Time, Literal::Text(text)) => DateTime::parse_from_rfc3339(text)
            .map(|time| Value::Time(Timestamp(time.timestamp_millis())))
            .map_err(|_| wrong(format!("`{text}` is not a timestamp; expected a form like 2026-11-22T10:00:00Z"))),
        (Type::Word(words), Literal::Text(text)) if !words.contains(&text.as_str()) => {
            let near = hint(text, words.iter().copied());
            Err(wrong(format!("unknown word `{text}`; expected one of {}{near}", words.join(", "))))
        }
        (of, other) if of.is_like(type_of(other)) => Ok(plain),
        (of, other) => Err(wrong(cannot_compare(of, type_of(other)))),
    }
}
