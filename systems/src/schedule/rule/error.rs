//! What is wrong with the text of a rule, and where.

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}, {part}: {reason}")]
pub struct Error {
    /// Where the fault begins: characters from the text's beginning, counted from 1.
    pub column: usize,
    /// The part of the rule it stands in, such as `hour` or `interval`.
    pub part: &'static str,
    /// What is wrong, in a few words.
    pub reason: String,
}

impl Error {
    pub(super) fn new(column: usize, part: &'static str, reason: impl Into<String>) -> Self {
        Self { column, part, reason: reason.into() }
    }
}
