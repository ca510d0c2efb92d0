//! A query that has been checked: names are fields, and every comparison makes sense.

use std::cmp::Ordering;

use agentsvc_components::Timestamp;

use super::ast::{Aggregate, Comparison};
use super::source::Access;
use super::table::{Field, Kind, Relation, Row};
use super::value::{Type, Value};
use crate::kernel::glob;

/// A checked query.
#[derive(Debug)]
pub struct Plan {
    pub(super) kind: &'static Kind,
    pub(super) access: Access,
    pub(super) filter: Option<Test>,
    pub(super) output: Output,
    pub(super) columns: Vec<OutputColumn>,
    pub(super) sort: Vec<PlannedKey>,
    pub(super) limit: usize,
}

/// One column of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputColumn {
    /// Its heading: the field or figure as it is written.
    pub name: String,
    /// What its values are.
    pub kind: Type,
}

/// What is made of the rows.
#[derive(Debug)]
pub(super) enum Output {
    /// Each is shown, with these fields.
    Rows(Vec<Path>),
    /// They are grouped.
    Groups {
        /// By these fields; by none: all are one group.
        by: Vec<Path>,
        /// The figures of each group.
        sums: Vec<(Aggregate, Option<Path>)>,
        /// The columns: places in `by`, then in `sums`.
        shown: Vec<usize>,
    },
}

/// What is sorted by.
#[derive(Debug)]
pub(super) struct PlannedKey {
    pub(super) by: KeyOf,
    pub(super) descending: bool,
}

/// Where a sort key comes from.
#[derive(Debug)]
pub(super) enum KeyOf {
    /// A field of the row.
    Field(Path),
    /// A value of the group: a place in `by`, then in `sums`.
    Group(usize),
}

/// A field, and the way to it.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) via: Vec<&'static Relation>,
    pub(super) field: &'static Field,
}

/// A condition.
#[derive(Debug)]
pub(super) enum Test {
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    Not(Box<Test>),
    Compare(Scalar, Comparison, Scalar),
    Glob(Scalar, String),
    /// The text in lower case.
    Contains(Scalar, String),
    In(Scalar, Vec<Value<'static>>),
    IsNull(Scalar),
    Holds(Scalar),
}

/// What a condition compares: a field of a row, a value that was written, the time, or a sum of them.
#[derive(Debug)]
pub(super) enum Scalar {
    Field(Path),
    Value(Value<'static>),
    Now,
    Sum(Box<Scalar>, Box<Scalar>, bool),
}

impl Plan {
    /// The columns of the answer.
    #[must_use]
    pub fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }
}

impl Path {
    /// The value of a row; nothing where the way ends.
    pub(super) fn read<'w>(&self, row: &Row<'w>) -> Value<'w> {
        let mut row = *row;
        for relation in &self.via {
            let Some(item) = (relation.follow)(&row) else { return Value::Null };
            row.item = item;
        }
        (self.field.read)(&row)
    }
}

impl Test {
    /// Does it hold for a row? Adds to `read` the bytes of the texts that it made or looked into, those that were held
    /// against a glob as often as the glob is long: at worst each of its bytes is.
    pub(super) fn holds(&self, row: &Row<'_>, now: Timestamp, read: &mut usize) -> bool {
        match self {
            Self::And(one, other) => one.holds(row, now, read) && other.holds(row, now, read),
            Self::Or(one, other) => one.holds(row, now, read) || other.holds(row, now, read),
            Self::Not(test) => !test.holds(row, now, read),
            Self::Compare(one, comparison, other) => {
                let (one, other) = (one.counted(row, now, read), other.counted(row, now, read));
                compare(&one, *comparison, &other)
            }
            Self::Glob(scalar, pattern) => {
                let Value::Text(text) = scalar.read(row, now) else { return false };
                *read = read.saturating_add(text.len().saturating_mul(pattern.len()));
                glob::matches(pattern, &text)
            }
            Self::Contains(scalar, part) => {
                let Value::Text(text) = scalar.read(row, now) else { return false };
                *read = read.saturating_add(text.len());
                glob::folded(&text).contains(part.as_str())
            }
            Self::In(scalar, choices) => {
                let value = scalar.counted(row, now, read);
                choices.iter().any(|choice| compare(&value, Comparison::Equal, choice))
            }
            Self::IsNull(scalar) => scalar.counted(row, now, read).is_null(),
            Self::Holds(scalar) => matches!(scalar.read(row, now), Value::Bool(true)),
        }
    }
}

/// Compares two values. Nothing equals nothing and is neither less nor greater; so `!=` holds for it.
pub(super) fn compare(one: &Value<'_>, comparison: Comparison, other: &Value<'_>) -> bool {
    if one.is_null() || other.is_null() {
        return comparison == Comparison::Unequal;
    }
    let order = match (one, other) {
        // Minus zero is zero.
        (Value::Number(one), Value::Number(other)) => one.partial_cmp(other).unwrap_or(Ordering::Equal),
        (one, other) => one.order(other),
    };
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::Unequal => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

impl Scalar {
    /// Reads, and adds the bytes of a text that was made for it.
    fn counted<'w>(&'w self, row: &Row<'w>, now: Timestamp, read: &mut usize) -> Value<'w> {
        let value = self.read(row, now);
        *read = read.saturating_add(value.made_bytes());
        value
    }

    pub(super) fn read<'w>(&'w self, row: &Row<'w>, now: Timestamp) -> Value<'w> {
        match self {
            Self::Field(path) => path.read(row),
            Self::Value(value) => value.clone(),
            Self::Now => Value::Time(now),
            Self::Sum(one, other, minus) => sum(&one.read(row, now), &other.read(row, now), *minus),
        }
    }
}

/// One value and another; nothing when one of them is nothing, or the sum is out of all bounds.
pub(super) fn sum(one: &Value<'_>, other: &Value<'_>, minus: bool) -> Value<'static> {
    let signed = |ms: i64| if minus { ms.checked_neg() } else { Some(ms) };
    let added = |one: i64, other: i64| signed(other).and_then(|other| one.checked_add(other));
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let sum = if minus { one - other } else { one + other };
            if sum.is_finite() { Value::Number(sum) } else { Value::Null }
        }
        (Value::Time(time), Value::Duration(ms)) => Value::maybe(added(time.0, *ms).map(Timestamp), Value::Time),
        (Value::Duration(ms), Value::Time(time)) if !minus => {
            Value::maybe(added(time.0, *ms).map(Timestamp), Value::Time)
        }
        (Value::Time(one), Value::Time(other)) if minus => Value::maybe(added(one.0, other.0), Value::Duration),
        (Value::Duration(one), Value::Duration(other)) => Value::maybe(added(*one, *other), Value::Duration),
        _ => Value::Null,
    }
}
