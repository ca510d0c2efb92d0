//! The condition language of workflows: when a conditional step runs, and when a loop has done enough
//! (spec 1, Workflow, `condition` and `until`).
//!
//! ```text
//! condition  = bare | any
//! any        = all { "or" all }
//! all        = one { "and" one }
//! one        = "not" one | "(" any ")" | comparison
//! comparison = operand operator operand | operand "matches" regex
//! operator   = "contains" | "equals" | "==" | "!=" | "<" | "<=" | ">" | ">="
//! operand    = "output" | "input" | variable | text | number
//! variable   = letter or "_", then letters, digits, "_", "-" and "."
//! text       = in double or single quotes, with \\ \" \' \n \r \t
//! number     = [ "-" ] digits [ "." digits ]
//! regex      = "/" pattern "/" [ "i" ]
//! ```
//!
//! A text without any operator outside of quotes is *bare*: it holds when the output contains it, case ignored. What is
//! only a quoted text is bare too, so that quotes make any text bare. Words of the language may be written in any case.

mod evaluate;
mod lexer;
mod parser;
mod print;
#[cfg(test)]
mod tests;

pub(crate) use evaluate::Scene;
pub(crate) use lexer::{is_keyword, is_name};

use regex::Regex;

/// A condition, ready to be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    /// The output contains this text, case ignored.
    Bare(Box<str>),
    /// Comparisons, and how they are joined.
    Test(Test),
}

/// A comparison, or several joined.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Test {
    /// One of these holds; at least two.
    Any(Vec<Self>),
    /// All of these hold; at least two.
    All(Vec<Self>),
    /// This does not hold.
    Not(Box<Self>),
    /// Two values stand to each other so.
    Compare(Operand, Operator, Operand),
    /// The pattern is found in the value.
    Matches(Operand, Pattern),
}

/// A value that is compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    /// The output: of the step before, or of the loop's last iteration.
    Output,
    /// The input of the step.
    Input,
    /// What a step stored under this name; empty when it stored nothing.
    Variable(Box<str>),
    /// This text.
    Text(Box<str>),
    /// This number.
    Number(f64),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    /// The left text contains the right one, case ignored.
    Contains,
    /// Equal: as numbers when both are, else as texts without the spaces around them.
    Equal,
    /// Not equal.
    Differs,
    /// Less, as numbers; false when one is no number.
    Less,
    /// Less or equal, as above.
    AtMost,
    /// Greater, as above.
    Greater,
    /// Greater or equal, as above.
    AtLeast,
}

/// A regular expression that is looked for anywhere in a text.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// As written between the slashes, `\/` being `/`.
    source: Box<str>,
    /// Written with an `i` behind.
    ignore_case: bool,
    regex: Regex,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.ignore_case == other.ignore_case
    }
}

/// What is wrong with a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {text}")]
pub(crate) struct Error {
    /// The character at fault, counted from 1.
    pub(crate) column: usize,
    /// What is wrong with it.
    pub(crate) text: String,
}

impl Condition {
    /// Reads a condition; `is_known` tells which variables there are.
    pub(crate) fn parse(text: &str, is_known: &dyn Fn(&str) -> bool) -> Result<Self, Error> {
        parser::parse(text, is_known)
    }
}
