//! Does a test hold?

use std::borrow::Cow;
use std::cmp::Ordering;

use agentsvc_components::Timestamp;
use regex::Regex;

use super::ast::Comparison;
use super::value::Value;
use crate::kernel::glob;

/// What a test is evaluated over.
pub(crate) trait Scene<F> {
    /// The value of a field.
    fn value<'s>(&'s self, field: &'s F) -> Value<'s>;

    /// What `now` means.
    fn now(&self) -> Timestamp;
}

/// A condition that has been checked.
#[derive(Debug)]
pub(crate) enum Test<F> {
    And(Vec<Self>),
    Or(Vec<Self>),
    Not(Box<Self>),
    Compare(Scalar<F>, Comparison, Scalar<F>),
    /// Texts are compared as numbers when both are, else without the spaces around them; what is no number is neither
    /// less nor greater.
    CompareLoosely(Scalar<F>, Comparison, Scalar<F>),
    Glob(Scalar<F>, String),
    Matches(Scalar<F>, Regex),
    /// What is written is in lower case.
    Contains(Scalar<F>, Scalar<F>),
    In(Scalar<F>, Vec<Value<'static>>),
    IsNull(Scalar<F>),
    Holds(Scalar<F>),
}

/// What a condition compares: a field, a value that was written, the time, or a sum of them.
#[derive(Debug)]
pub(crate) enum Scalar<F> {
    Field(F),
    Value(Value<'static>),
    Now,
    Sum(Box<Self>, Box<Self>, bool),
}

impl<F> Test<F> {
    /// Does it hold? Adds to `read` the bytes of the texts that it made or looked into, those that were matched
    /// against a glob as often as the glob is long: at worst each of its bytes is.
    pub(crate) fn holds(&self, scene: &impl Scene<F>, read: &mut usize) -> bool {
        match self {
            Self::And(all) => all.iter().all(|test| test.holds(scene, read)),
            Self::Or(any) => any.iter().any(|test| test.holds(scene, read)),
            Self::Not(test) => !test.holds(scene, read),
            Self::Compare(one, comparison, other) => {
                let (one, other) = (one.counted(scene, read), other.counted(scene, read));
                compare(&one, *comparison, &other)
            }
            Self::CompareLoosely(one, comparison, other) => match (one.read(scene), other.read(scene)) {
                (Value::Text(one), Value::Text(other)) => compare_loosely(&one, *comparison, &other),
                _ => false,
            },
            Self::Glob(scalar, pattern) => {
                let Value::Text(text) = scalar.read(scene) else { return false };
                *read = read.saturating_add(text.len().saturating_mul(pattern.len()));
                glob::matches(pattern, &text)
            }
            Self::Matches(scalar, regex) => {
                let Value::Text(text) = scalar.read(scene) else { return false };
                *read = read.saturating_add(text.len());
                regex.is_match(&text)
            }
            Self::Contains(scalar, part) => {
                let Value::Text(text) = scalar.read(scene) else { return false };
                *read = read.saturating_add(text.len());
                let text = glob::folded(&text);
                match part {
                    Scalar::Value(Value::Text(part)) => text.contains(part.as_ref()),
                    part => {
                        matches!(part.read(scene), Value::Text(part) if text.contains(glob::folded(&part).as_ref()))
                    }
                }
            }
            Self::In(scalar, choices) => {
                let value = scalar.counted(scene, read);
                choices.iter().any(|choice| compare(&value, Comparison::Equal, choice))
            }
            Self::IsNull(scalar) => scalar.counted(scene, read).is_null(),
            Self::Holds(scalar) => matches!(scalar.read(scene), Value::Bool(true)),
        }
    }
}

impl<F> Scalar<F> {
    /// A written text in lower case; anything else as it is.
    pub(super) fn folded(self) -> Self {
        match self {
            Self::Value(Value::Text(text)) => Self::Value(Value::Text(text.to_lowercase().into())),
            other => other,
        }
    }

    /// Reads, and adds the bytes of a text that was made for it.
    fn counted<'s>(&'s self, scene: &'s impl Scene<F>, read: &mut usize) -> Value<'s> {
        let value = self.read(scene);
        *read = read.saturating_add(value.made_bytes());
        value
    }

    fn read<'s>(&'s self, scene: &'s impl Scene<F>) -> Value<'s> {
        match self {
            Self::Field(field) => scene.value(field),
            Self::Value(Value::Text(text)) => Value::Text(Cow::Borrowed(text)),
            Self::Value(value) => value.clone(),
            Self::Now => Value::Time(scene.now()),
            Self::Sum(one, other, minus) => sum(&one.read(scene), &other.read(scene), *minus),
        }
    }
}

impl Comparison {
    /// Does it hold for values in this order?
    const fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// Compares two values. Nothing equals nothing and is neither less nor greater; so `!=` holds for it.
fn compare(one: &Value<'_>, comparison: Comparison, other: &Value<'_>) -> bool {
    if one.is_null() || other.is_null() {
        return comparison == Comparison::Unequal;
    }
    comparison.holds(match (one, other) {
        // Minus zero is zero.
        (Value::Number(one), Value::Number(other)) => one.partial_cmp(other).unwrap_or(Ordering::Equal),
        (one, other) => one.order(other),
    })
}

fn compare_loosely(one: &str, comparison: Comparison, other: &str) -> bool {
    match as_number(one).zip(as_number(other)) {
        Some((one, other)) => compare(&Value::Number(one), comparison, &Value::Number(other)),
        None => match comparison {
            Comparison::Equal => one.trim() == other.trim(),
            Comparison::Unequal => one.trim() != other.trim(),
            _ => false,
        },
    }
}

/// The number that a text is: digits, a point and digits where there is one, a minus before them. Spaces around it do
/// not matter.
pub(crate) fn as_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let value: f64 = if digits(whole) && digits(fraction) { text.parse().ok()? } else { return None };
    value.is_finite().then_some(value)
}

/// One value and another; nothing when one of them is nothing, or the sum is out of all bounds.
fn sum(one: &Value<'_>, other: &Value<'_>, minus: bool) -> Value<'static> {
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
