//! Does a condition hold?

use std::borrow::Cow;

use super::lexer::as_number;
use super::{Condition, Operand, Operator, Test};

/// What a condition is asked about.
pub(crate) struct Scene<'a> {
    /// The output.
    pub(crate) output: &'a str,
    /// The input of the step.
    pub(crate) input: &'a str,
    /// What a step stored under a name.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<&'a str>,
}

impl Condition {
    /// Does it hold?
    pub(crate) fn holds(&self, scene: &Scene<'_>) -> bool {
        match self {
            Self::Bare(text) => contains(scene.output, text),
            Self::Test(test) => test.holds(scene),
        }
    }
}

impl Test {
    fn holds(&self, scene: &Scene<'_>) -> bool {
        match self {
            Self::Any(tests) => tests.iter().any(|test| test.holds(scene)),
            Self::All(tests) => tests.iter().all(|test| test.holds(scene)),
            Self::Not(test) => !test.holds(scene),
            Self::Compare(left, operator, right) => compare(&left.value(scene), *operator, &right.value(scene)),
            Self::Matches(left, pattern) => pattern.regex.is_match(&left.value(scene)),
        }
    }
}

impl Operand {
    fn value<'a, 'scene: 'a>(&'a self, scene: &Scene<'scene>) -> Cow<'a, str> {
        match self {
            Self::Output => Cow::Borrowed(scene.output),
            Self::Input => Cow::Borrowed(scene.input),
            Self::Variable(name) => Cow::Borrowed((scene.variable)(name).unwrap_or_default()),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Number(number) => Cow::Owned(number.to_string()),
        }
    }
}

fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

fn compare(left: &str, operator: Operator, right: &str) -> bool {
    let numbers = as_number(left).zip(as_number(right));
    let equal = || numbers.map_or_else(|| left.trim() == right.trim(), |(left, right)| left == right);
    match operator {
        Operator::Contains => contains(left, right),
        Operator::Equal => equal(),
        Operator::Differs => !equal(),
        Operator::Less => numbers.is_some_and(|(left, right)| left < right),
        Operator::AtMost => numbers.is_some_and(|(left, right)| left <= right),
        Operator::Greater => numbers.is_some_and(|(left, right)| left > right),
        Operator::AtLeast => numbers.is_some_and(|(left, right)| left >= right),
    }
}
