//! What is wrong with an expression, and where.

use std::fmt;

/// A text that cannot be read, or that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The character at fault, counted from 1; one behind the last when something is missing.
    pub column: usize,
    /// One sentence.
    pub message: String,
}

impl Error {
    pub(crate) fn new(column: usize, message: impl Into<String>) -> Self {
        Self { column, message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for Error {}

/// The word of `words` that was probably meant by `text`, as the end of a sentence: `; did you mean `x`?`, or nothing.
pub(crate) fn hint<'w>(text: &str, words: impl IntoIterator<Item = &'w str>) -> String {
    let text = text.to_lowercase();
    let near = words.into_iter().map(|word| (distance(&text, &word.to_lowercase()), word));
    // A third of the letters may be wrong: more would be guessing.
    let near = near.filter(|(distance, word)| distance * 3 <= word.len().max(3)).min();
    near.map(|(_, word)| format!("; did you mean `{word}`?")).unwrap_or_default()
}

/// Letters to add, drop, change or swap with their neighbour to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().take(64).collect(), to.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for (at, letter) in from.iter().enumerate() {
        let mut row = vec![at + 1];
        for (column, other) in to.iter().enumerate() {
            let changed = rows[at][column] + usize::from(letter != other);
            let mut best = changed.min(rows[at][column + 1] + 1).min(row[column] + 1);
            if at > 0 && column > 0 && *letter == to[column - 1] && from[at - 1] == *other {
                best = best.min(rows[at - 1][column - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_near() {
        let words = ["tokens", "state", "name"];
        assert_eq!(hint("toknes", words), "; did you mean `tokens`?");
        assert_eq!(hint("nmae", words), "; did you mean `name`?");
        assert_eq!(hint("State", words), "; did you mean `state`?");
        assert_eq!(hint("colour", words), "");
        assert_eq!(hint("", words), "");
    }
}
