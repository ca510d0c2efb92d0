//! The files of a hand.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::time::SystemTime;

use agentsvc_systems::hand::limits::HAND_SKILL_BYTES_MAX;

use crate::kernel::disk;

/// Time of the last change and bytes of a file.
pub(super) type Stamp = (Option<SystemTime>, u64);

/// Tells whether a file changed.
pub(super) fn stamp(path: &Path) -> io::Result<Stamp> {
    let found = fs::metadata(path)?;
    if found.is_file() { Ok((found.modified().ok(), found.len())) } else { Err(ErrorKind::NotFound.into()) }
}

/// The text of a file.
///
/// # Errors
/// Why it cannot be read, in a sentence.
pub(super) fn text_of(path: &Path, most: usize) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = disk::open(path).and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| format!("the file cannot be read: {}", error.kind()))?;
    if bytes.len() > most {
        return Err(format!("the file is larger than {most} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text".to_owned())
}

/// The name of the file with the SKILL.md of a role.
pub(super) fn skill_file(role: &str) -> String {
    if role.is_empty() { "SKILL.md".to_owned() } else { format!("SKILL-{role}.md") }
}

/// The texts of SKILL.md in a folder, by role. One that cannot be read is left out.
pub(super) fn skills(dir: &Path) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for path in disk::entries(dir).unwrap_or_default() {
        let Some(stem) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".md")) else { continue };
        let role = match stem.strip_prefix("SKILL-") {
            Some(role) => role,
            None if stem.eq_ignore_ascii_case("SKILL") => "",
            None => continue,
        };
        match text_of(&path, HAND_SKILL_BYTES_MAX) {
            Ok(text) => drop(texts.insert(role.to_owned(), text)),
            Err(why) => tracing::warn!(file = stem, why, "a SKILL.md of a hand is left out"),
        }
    }
    texts
}
