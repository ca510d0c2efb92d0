//! What can be wrong with a configuration, and where.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Characters of a wrong word that are compared with right ones.
const WORD_CHARS_MAX: usize = 64;

/// A position in a text; both count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl Place {
    /// The place of the byte offset `at` in `text`; past the end is the end, inside a character its start.
    pub(crate) fn of(text: &str, at: usize) -> Self {
        let before = &text[..text.floor_char_boundary(at)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}

/// Something found at a byte offset, before the offset is turned into a [`Place`].
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Byte offset in the text.
    pub(crate) at: usize,
    /// The key path, such as `world.tick_hz`; empty where no key is concerned.
    pub(crate) key: String,
    /// What is wrong.
    pub(crate) message: String,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// The key path, such as `world.tick_hz`; empty when the text is not TOML there.
    pub key: String,
    /// What is wrong and what would be right. Never the value itself: it may be a secret.
    pub message: String,
}

/// Everything that is wrong with one file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// The file.
    pub path: PathBuf,
    /// In the order of the file.
    pub list: Vec<Problem>,
}

impl Problems {
    /// Sorts what was found and gives each its place in `text`.
    pub(crate) fn locate(path: &Path, text: &str, mut found: Vec<Found>) -> Self {
        found.sort_by_key(|found| found.at);
        let list = found.into_iter();
        let list = list.map(|Found { at, key, message }| Problem { place: Place::of(text, at), key, message });
        Self { path: path.to_owned(), list: list.collect() }
    }
}

impl fmt::Display for Problems {
    /// One line per problem: `file:line:column: key: message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, Problem { place, key, message }) in self.list.iter().enumerate() {
            let newline = if nth == 0 { "" } else { "\n" };
            let colon = if key.is_empty() { "" } else { ": " };
            let Place { line, column } = place;
            write!(f, "{newline}{}:{line}:{column}: {key}{colon}{message}", self.path.display())?;
        }
        Ok(())
    }
}

/// Something that is written but has no effect. The daemon starts all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The line of the file, from 1.
    pub line: usize,
    /// The key path.
    pub key: String,
    /// What has no effect.
    pub message: String,
}

impl Warning {
    /// Sorts what was found and gives each its line in `text`.
    pub(crate) fn locate(text: &str, mut found: Vec<Found>) -> Vec<Self> {
        found.sort_by_key(|found| found.at);
        let found = found.into_iter();
        found.map(|Found { at, key, message }| Self { line: Place::of(text, at).line, key, message }).collect()
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// The name among `candidates` that `word` was most likely meant to be. `None` when nothing is near: more
/// than a third of the longer word would have to change. Two neighbours that changed places are one change.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A wrong key can be a whole file.
    let word: String = word.to_lowercase().chars().take(WORD_CHARS_MAX).collect();
    let scored = candidates.map(|candidate| (strsim::osa_distance(&word, candidate), candidate));
    let (distance, candidate) = scored.min_by_key(|(distance, _)| *distance)?;
    let longest = word.chars().count().max(candidate.len());
    (distance * 3 <= longest.max(3)).then_some(candidate)
}

#[cfg(test)]
mod tests {
    use super::{Place, nearest};

    #[test]
    fn nearest_or_nothing() {
        let keys = ["api_listen", "api_key", "mode"];
        assert_eq!(nearest("api_lisen", keys.into_iter()), Some("api_listen"));
        assert_eq!(nearest("API_KEY", keys.into_iter()), Some("api_key"));
        assert_eq!(nearest("zzzzzzz", keys.into_iter()), None);
        assert_eq!(nearest("x", [].into_iter()), None);
        assert_eq!(nearest("mdoe", keys.into_iter()), Some("mode"), "two neighbours changed places");
        assert_eq!(nearest(&"mode".repeat(1 << 20), keys.into_iter()), None);
    }

    #[test]
    fn places_count_characters_from_one() {
        assert_eq!(Place::of("", 9), Place { line: 1, column: 1 });
        assert_eq!(Place::of("é = 1\nb", 2), Place { line: 1, column: 2 });
        assert_eq!(Place::of("é = 1\nb", 7), Place { line: 2, column: 1 });
    }
}
