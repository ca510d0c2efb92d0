//! Paths of a workspace: relative, without `..`, and made of names that do no harm when they are shown.

use std::fmt;

use agentsvc_components::kernel::limit::{PATH_BYTES_MAX, PATH_DEPTH_MAX};

use super::error::Error;

/// Bytes of one name; file systems take no more.
const NAME_BYTES_MAX: usize = 255;
/// Characters of a wrong path that an error shows.
const SHOWN_CHARS_MAX: usize = 120;

/// A path that was checked: names joined by `/`. Empty is the workspace itself.
///
/// It is a promise about its text only. What it leads to is decided when it is opened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkspacePath(String);

impl WorkspacePath {
    /// Checks a path as a model or a client wrote it. `.`, `./` and doubled slashes are taken out.
    ///
    /// # Errors
    /// [`Error::Path`] when it is absolute, too long or too deep, has a part `..`, or holds a backslash, a NUL or
    /// another control character.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |reason| Error::Path { path: text.chars().take(SHOWN_CHARS_MAX).collect(), reason };
        if text.len() > PATH_BYTES_MAX {
            return Err(wrong("is too long"));
        }
        if text.starts_with('/') {
            return Err(wrong("is absolute; use a path relative to the workspace, such as \"notes/today.md\""));
        }
        if text.chars().any(char::is_control) {
            return Err(wrong("contains a control character"));
        }
        if text.contains('\\') {
            return Err(wrong("contains a backslash; use / as separator"));
        }
        let names: Vec<&str> = text.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        if names.contains(&"..") {
            return Err(wrong("contains \"..\", which is not allowed"));
        }
        if names.iter().any(|name| name.len() > NAME_BYTES_MAX) {
            return Err(wrong("has a name that is too long"));
        }
        if names.len() > PATH_DEPTH_MAX {
            return Err(wrong("is nested too deeply"));
        }
        Ok(Self(names.join("/")))
    }

    /// The text; empty is the workspace itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True when it is the workspace itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The directory and the name in it; `None` for the workspace itself.
    pub(super) fn split(&self) -> Option<(&str, &str)> {
        if self.is_root() { None } else { Some(self.0.rsplit_once('/').unwrap_or(("", &self.0))) }
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_root() { "." } else { &self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::WorkspacePath;

    #[test]
    fn paths_are_made_plain() {
        for (text, plain) in [
            ("", ""),
            (".", ""),
            ("./", ""),
            ("a", "a"),
            ("./a//b/./c/", "a/b/c"),
            ("..a/b..", "..a/b.."),
            ("...", "..."),
            ("ä ö/日本", "ä ö/日本"),
        ] {
            assert_eq!(WorkspacePath::parse(text).unwrap().as_str(), plain, "{text}");
        }
        assert_eq!(WorkspacePath::parse("a/b/c").unwrap().split(), Some(("a/b", "c")));
        assert_eq!(WorkspacePath::parse("c").unwrap().split(), Some(("", "c")));
        assert_eq!(WorkspacePath::parse(".").unwrap().split(), None);
    }

    #[test]
    fn what_could_escape_is_refused() {
        let (deep, long, name) = ("a/".repeat(33), "a/".repeat(600), "a".repeat(256));
        for text in [
            "/etc/passwd",
            "//etc",
            "..",
            "../x",
            "a/../b",
            "a/..",
            "..\\x",
            "a\\b",
            "a\0b",
            "a\nb",
            "\u{7f}",
            "\u{85}",
            &deep,
            &long,
            &name,
        ] {
            let error = WorkspacePath::parse(text).unwrap_err().to_string();
            assert!(error.starts_with("the path \"") && error.len() < 600, "{error}");
        }
    }
}
