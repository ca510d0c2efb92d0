//! Patches: read from either form that models write, fitted to the files, and only then written.
//!
//! A unified diff (`---`, `+++`, `@@ -1,3 +1,4 @@`) or the envelope `*** Begin Patch`. Both become [`Change`]s; what fits
//! where is decided by [`fit`].

mod envelope;
mod fit;
mod unified;

pub(super) use fit::{Looks, fit};

/// What is to happen to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A new file.
    Add {
        /// Its path.
        path: String,
        /// Its text.
        text: String,
    },
    /// The file goes.
    Delete {
        /// Its path.
        path: String,
    },
    /// The file changes, and may be renamed.
    Update {
        /// Its path.
        path: String,
        /// Its new path.
        to: Option<String>,
        /// The places that change.
        hunks: Vec<Hunk>,
    },
}

impl Change {
    /// The files that it changes.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        let (path, to) = match self {
            Self::Add { path, .. } | Self::Delete { path } => (path, None),
            Self::Update { path, to, .. } => (path, to.as_deref()),
        };
        std::iter::once(path.as_str()).chain(to)
    }
}

/// One place that changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The line, from 1, where a unified diff says it begins.
    pub(super) line: Option<usize>,
    /// Lines that stand somewhere before it, outermost first; the envelope's `@@ heading`.
    pub(super) headings: Vec<String>,
    /// The lines, in order.
    pub(super) lines: Vec<Line>,
    /// It reaches to the end of the file.
    pub(super) at_end: bool,
    /// The last line of the result has no newline.
    pub(super) no_newline: bool,
}

/// One line of a hunk, without its newline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Stands there before and after.
    Keep(String),
    /// Goes.
    Remove(String),
    /// Comes.
    Add(String),
}

impl Line {
    /// The line of a hunk; `None` when it begins with none of the three signs.
    fn read(text: &str) -> Option<Self> {
        let rest = || text[1..].to_owned();
        match text.as_bytes().first() {
            // Some models drop the space of an empty line.
            None => Some(Self::Keep(String::new())),
            Some(b' ') => Some(Self::Keep(rest())),
            Some(b'-') => Some(Self::Remove(rest())),
            Some(b'+') => Some(Self::Add(rest())),
            _ => None,
        }
    }

    /// What it says of the file as it was; `None` for a new line.
    pub(super) fn before(&self) -> Option<&str> {
        match self {
            Self::Keep(text) | Self::Remove(text) => Some(text),
            Self::Add(_) => None,
        }
    }
}

/// Reads a patch.
///
/// # Errors
/// A sentence for the model: which line is wrong, and what was expected.
pub(super) fn read(text: &str) -> Result<Vec<Change>, String> {
    // Models like to wrap a patch into a fence.
    let lines: Vec<&str> = text.lines().map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    let begin = lines.iter().position(|line| line.trim() == envelope::BEGIN);
    let changes = match begin {
        Some(begin) => envelope::read(&lines, begin)?,
        None => unified::read(&lines)?,
    };
    if changes.is_empty() {
        return Err(
            "The patch changes nothing. Write a unified diff with `--- a/FILE`, `+++ b/FILE` and `@@` lines, or \
            `*** Begin Patch`, `*** Update File: FILE` ... `*** End Patch`."
                .to_owned(),
        );
    }
    Ok(changes)
}

/// The texts that become of `file` by each change in `patch`, one after the other, whatever files it names; for fuzz
/// targets.
///
/// # Errors
/// A sentence for the model: what cannot be read, or does not fit.
pub(crate) fn patched(file: &str, patch: &str) -> Result<String, String> {
    let looks = Looks::of_patch();
    read(patch)?.into_iter().try_fold(file.to_owned(), |before, change| match change {
        Change::Add { text, .. } => Ok(text),
        Change::Delete { .. } => Ok(String::new()),
        Change::Update { hunks, .. } => fit(&before, &hunks, &looks),
    })
}
