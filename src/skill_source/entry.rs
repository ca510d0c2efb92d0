//! Names of files in a skill: which are taken, and which exclude each other.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;

/// Bytes of a path.
const PATH_BYTES_MAX: usize = 1_024;
/// Bytes of one name in it, as file systems have them.
const NAME_BYTES_MAX: usize = 255;
/// Names in a path.
const DEPTH_MAX: usize = 16;

/// What stands at a path of a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Directory,
    File,
}

/// The paths that were taken so far. Two that differ in case or in Unicode form only are one: which of them a file system
/// would keep depends on the file system.
#[derive(Debug, Default)]
pub(crate) struct Entries(HashMap<String, (Kind, String)>);

impl Entries {
    /// Takes a file at this path, relative, with `/` between names. Gives the path in the one spelling that is used.
    ///
    /// # Errors
    /// Why not, as a sentence that names the path.
    pub(crate) fn file(&mut self, path: &str) -> Result<String, String> {
        let path = checked(path)?;
        let mut end = 0;
        while let Some(next) = path[end..].find('/') {
            self.take(&path[..end + next], Kind::Directory)?;
            end += next + 1;
        }
        self.take(&path, Kind::File)?;
        Ok(path)
    }

    fn take(&mut self, path: &str, kind: Kind) -> Result<(), String> {
        let folded: String = path.nfkc().flat_map(char::to_lowercase).collect();
        match self.0.get(&folded) {
            None => {
                self.0.insert(folded, (kind, path.to_owned()));
                Ok(())
            }
            Some((Kind::Directory, there)) if kind == Kind::Directory && there == path => Ok(()),
            Some((_, there)) if there == path => Err(format!("{} is there twice", shown(path))),
            Some((_, there)) => Err(format!("{} and {} differ in case only", shown(there), shown(path))),
        }
    }
}

/// The path without `./` at its beginning.
///
/// # Errors
/// Why it is none for a file of a skill.
pub(crate) fn checked(path: &str) -> Result<String, String> {
    let wrong = |why: &str| Err(format!("{}: {why}", shown(path)));
    let mut rest = path;
    while let Some(inner) = rest.strip_prefix("./") {
        rest = inner;
    }
    if rest.is_empty() || rest.len() > PATH_BYTES_MAX {
        return wrong("the path must have 1 to 1024 bytes");
    }
    if rest.starts_with('/') || rest.contains('\\') || rest.as_bytes().get(1) == Some(&b':') {
        return wrong("the path must be relative, with `/` between its names");
    }
    if rest.chars().any(char::is_control) {
        return wrong("the path has control characters");
    }
    let names: Vec<&str> = rest.split('/').collect();
    if names.len() > DEPTH_MAX {
        return wrong("the path has more than 16 names");
    }
    for name in names {
        if matches!(name, "" | "." | "..") {
            return wrong("the path leaves the folder of the skill or has an empty name");
        }
        if name.len() > NAME_BYTES_MAX {
            return wrong("a name has more than 255 bytes");
        }
        if name.to_ascii_lowercase().trim_end_matches(['.', ' ']).ends_with(".pth") {
            return wrong("files that Python runs at its start (.pth) are refused");
        }
    }
    Ok(rest.to_owned())
}

/// Does the path lead out of the folder that it is unpacked in, on some system?
pub(crate) fn leaves(path: &str) -> bool {
    path.starts_with('/')
        || path.contains(['\\', '\0'])
        || path.as_bytes().get(1) == Some(&b':')
        || path.split('/').any(|name| name == "..")
}

/// A path of others in an error: one line, not too long.
fn shown(path: &str) -> String {
    let cut: String = path.chars().take(120).map(|c| if c.is_control() { '?' } else { c }).collect();
    if cut.len() < path.len() { format!("{cut:?}…") } else { format!("{cut:?}") }
}

#[cfg(test)]
mod tests {
    use super::{Entries, checked, leaves};

    #[test]
    fn paths_stay_in_the_folder() {
        for path in ["SKILL.md", "./SKILL.md", "references/a b.md", "scripts/.env.example", "ü/日本.md"] {
            assert_eq!(checked(path).unwrap(), path.trim_start_matches("./"), "{path}");
        }
        let long = "a/".repeat(16) + "b";
        for path in [
            "",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a/..",
            "a//b",
            "a/./b",
            "a\\..\\b",
            "C:/x",
            "c:x",
            "a\0b",
            "a\nb",
            "./",
            &long,
            "evil.pth",
            "lib/Evil.PTH",
            "evil.pth.",
            &"x".repeat(256),
            &"x/".repeat(600),
        ] {
            assert!(checked(path).is_err(), "{path:?}");
        }
        assert!(["/a", "../a", "a/../b", "a\\b", "C:x", "a\0"].into_iter().all(leaves));
        assert!(!["a/b", "a..b", "a.pth"].into_iter().any(leaves));
    }

    #[test]
    fn no_two_paths_are_one_on_some_file_system() {
        let taken = |paths: &[&str]| {
            let mut entries = Entries::default();
            paths.iter().try_for_each(|path| entries.file(path).map(drop))
        };
        taken(&["SKILL.md", "a/b.md", "a/c.md", "b.md"]).unwrap();
        for (paths, part) in [
            (&["a.md", "a.md"][..], "twice"),
            (&["a.md", "A.md"], "differ in case"),
            (&["a/x", "A/y"], "differ in case"),
            (&["e\u{301}.md", "\u{e9}.md"], "differ in case"),
            (&["a", "a/b"], "twice"),
            (&["a/b", "a"], "twice"),
            (&["ﬁ.md", "fi.md"], "differ in case"),
        ] {
            let error = taken(paths).unwrap_err();
            assert!(error.contains(part), "{paths:?}: {error}");
        }
    }
}
