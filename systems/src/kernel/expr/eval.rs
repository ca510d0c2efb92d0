//! Does a test hold?

use std::borrow::Cow;
use std::cmp::Ordering;

use agentsvc_components::Timestamp;

use super::ast::{Comparison, Pattern};
use super::value::Value;
use crate::kernel::glob;

/// What a test is evaluated over.
pub(crate) trait Scene<F> {
    /// The value of a field.
    fn value<'s>(&'s self, field: &'s F) -> Value<'s>;

    /// What `now` means.
    fn now(&self) -> Timestamp;
}

/// More would be read than may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spent;

/// What evaluations cost, in units of about a nanosecond: about one for each byte of a text that is read.
#[derive(Debug)]
pub(crate) struct Meter {
    spent: usize,
    most: usize,
}

impl Meter {
    /// One that allows for so much.
    pub(crate) const fn new(most: usize) -> Self {
        Self { spent: 0, most }
    }

    /// What was taken; never more than is allowed for.
    pub(crate) const fn spent(&self) -> usize {
        self.spent
    }

    /// Takes so much, before it is done. What is too much uses up all that is left.
    pub(crate) fn take(&mut self, units: usize) -> Result<(), Spent> {
        let left = self.most - self.spent;
        self.spent += units.min(left);
        if units > left { Err(Spent) } else { Ok(()) }
    }
}

/// Units for each byte of a text whose case is ignored, where it is not ASCII.
const FOLD_UNITS: usize = 8;
/// Units for each byte that a regular expression looks at, and for each of its states.
const STATE_UNITS: usize = 8;
/// Units for each part of a regular expression that is compiled.
const COMPILE_UNITS: usize = 1_000;

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
    Matches(Scalar<F>, Pattern),
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
    /// Does it hold? Takes from `meter` the bytes of the texts that it makes or looks into: those that are matched against a
    /// glob as often as the glob is long, and those that a regular expression looks at as often as it has states, for at
    /// worst each byte is looked at so often.
    pub(crate) fn holds(&self, scene: &impl Scene<F>, meter: &mut Meter) -> Result<bool, Spent> {
        Ok(match self {
            Self::And(all) => {
                for test in all {
                    if !test.holds(scene, meter)? {
                        return Ok(false);
                    }
                }
                true
            }
            Self::Or(any) => {
                for test in any {
                    if test.holds(scene, meter)? {
                        return Ok(true);
                    }
                }
                false
            }
            Self::Not(test) => !test.holds(scene, meter)?,
            Self::Compare(one, comparison, other) => {
                let (one, other) = (one.counted(scene, meter)?, other.counted(scene, meter)?);
                compare(&one, *comparison, &other)
            }
            Self::CompareLoosely(one, comparison, other) => match (one.read(scene), other.read(scene)) {
                (Value::Text(one), Value::Text(other)) => {
                    meter.take(one.len() + other.len())?;
                    compare_loosely(&one, *comparison, &other)
                }
                _ => false,
            },
            Self::Glob(scalar, pattern) => {
                let Value::Text(text) = scalar.read(scene) else { return Ok(false) };
                meter.take(text.len().saturating_mul(pattern.len()))?;
                glob::matches(pattern, &text)
            }
            Self::Matches(scalar, pattern) => {
                let Value::Text(text) = scalar.read(scene) else { return Ok(false) };
                meter.take(text.len().saturating_mul(pattern.width).saturating_mul(STATE_UNITS))?;
                pattern.regex.is_match(&text)
            }
            Self::Contains(scalar, part) => {
                let Value::Text(text) = scalar.read(scene) else { return Ok(false) };
                let text = folded(text, meter)?;
                match part {
                    Scalar::Value(Value::Text(part)) => text.contains(part.as_ref()),
                    part => match part.read(scene) {
                        Value::Text(part) => text.contains(folded(part, meter)?.as_ref()),
                        _ => false,
                    },
                }
            }
            Self::In(scalar, choices) => {
                let value = scalar.counted(scene, meter)?;
                choices.iter().any(|choice| compare(&value, Comparison::Equal, choice))
            }
            Self::IsNull(scalar) => scalar.counted(scene, meter)?.is_null(),
            Self::Holds(scalar) => matches!(scalar.read(scene), Value::Bool(true)),
        })
    }

    /// What compiling its regular expressions took, in the units of [`Meter`].
    pub(crate) fn compile_units(&self) -> usize {
        self.patterns_size().saturating_mul(COMPILE_UNITS)
    }

    /// The size of its regular expressions.
    pub(crate) fn patterns_size(&self) -> usize {
        match self {
            Self::And(tests) | Self::Or(tests) => tests.iter().map(Self::patterns_size).sum(),
            Self::Not(test) => test.patterns_size(),
            Self::Matches(_, pattern) => pattern.size,
            _ => 0,
        }
    }
}

/// A text without the difference of upper and lower case.
fn folded<'t>(text: Cow<'t, str>, meter: &mut Meter) -> Result<Cow<'t, str>, Spent> {
    meter.take(text.len() * if text.is_ascii() { 1 } else { FOLD_UNITS })?;
    Ok(match text {
        Cow::Borrowed(text) => glob::folded(text),
        Cow::Owned(text) => glob::folded(&text).into_owned().into(),
    })
}

impl<F> Scalar<F> {
    /// A written text in lower case; anything else as it is.
    pub(super) fn folded(self) -> Self {
        match self {
            Self::Value(Value::Text(text)) => Self::Value(Value::Text(glob::folded(&text).into_owned().into())),
            other => other,
        }
    }

    /// Reads, and adds the bytes of a text that was made for it.
    fn counted<'s>(&'s self, scene: &'s impl Scene<F>, meter: &mut Meter) -> Result<Value<'s>, Spent> {
        let value = self.read(scene);
        meter.take(value.made_bytes())?;
        Ok(value)
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
