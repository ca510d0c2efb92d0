//! Why a manifest's text was refused, and where.

use std::fmt;
use std::ops::Range;

use agentsvc_components::Refusal;

/// A place in the text. Both counts start at 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The character in that line.
    pub column: u32,
}

impl Position {
    /// The place of byte `offset` of `text`; the end of the text when it is beyond.
    fn of(text: &str, offset: usize) -> Self {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let start_of_line = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before[start_of_line..].chars().count() + 1;
        // The text is at most limit::MANIFEST_BYTES_MAX bytes where it matters; saturate for anything else.
        Self { line: u32::try_from(line).unwrap_or(u32::MAX), column: u32::try_from(column).unwrap_or(u32::MAX) }
    }
}

/// A manifest's text that cannot be used, with the place and the key at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// What is wrong, without the place: `expected a number, found a string`.
    pub message: String,
    /// Where; `None` when the fault is of the text as a whole, such as a missing key.
    pub position: Option<Position>,
    /// Which key, as a path such as `model.temperature` or `capabilities.tools[2]`; `None` for bad TOML.
    pub key: Option<String>,
}

impl Error {
    /// A fault of the whole text.
    pub(super) fn whole(message: impl Into<String>) -> Self {
        Self { message: message.into(), position: None, key: None }
    }

    /// The text is not TOML at byte `offset`.
    pub(super) fn syntax(text: &str, offset: usize, message: impl Into<String>) -> Self {
        Self { message: message.into(), position: Some(Position::of(text, offset)), key: None }
    }

    /// The value of `key`, found at `span`, is wrong.
    pub(super) fn value(text: &str, span: Range<usize>, key: String, message: impl Into<String>) -> Self {
        Self { message: message.into(), position: Some(Position::of(text, span.start)), key: Some(key) }
    }

    /// `key` is required and not there.
    pub(super) fn missing(key: &str) -> Self {
        Self { message: "missing; this key is required".to_owned(), position: None, key: Some(key.to_owned()) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.position, &self.key) {
            (Some(at), Some(key)) => write!(f, "line {}: `{key}`: ", at.line)?,
            (Some(at), None) => write!(f, "line {}, column {}: ", at.line, at.column)?,
            (None, Some(key)) => write!(f, "`{key}`: ")?,
            (None, None) => {}
        }
        f.write_str(&self.message)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::bad_field("manifest_toml", error.to_string())
    }
}
