//! Checksums of skills: those in the folder, those beside an archive and those of hubs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::path::Path;

use agentsvc_systems::kernel::record::hex;
use sha2::{Digest as _, Sha256};

use super::staging::{FILES_MAX, FileSum};
use crate::kernel::disk;

/// The file of a folder that has the sums of the others.
pub(super) const SUMS_FILE: &str = "SHA256SUMS";
/// Bytes of a file of checksums.
pub(super) const SUMS_BYTES_MAX: u64 = 1 << 20;
/// Digits of a sum.
const SUM_DIGITS: usize = 64;

/// The text of a file of checksums; `None` when there is none.
///
/// # Errors
/// The disk's; [`io::ErrorKind::InvalidData`] with more than [`SUMS_BYTES_MAX`] bytes, or when it is no UTF-8.
pub(super) fn read(path: &Path) -> io::Result<Option<String>> {
    let Some(file) = disk::there(disk::open(path))? else { return Ok(None) };
    let mut text = String::new();
    file.take(SUMS_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > SUMS_BYTES_MAX {
        let why = format!("the file of checksums has more than {SUMS_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(Some(text))
}

/// The lines of a file as `sha256sum` writes it: path and sum.
///
/// # Errors
/// The line that is none, or that there are more than a skill has files.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut sums = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = || format!("{SUMS_FILE}, line {}: expected a SHA-256 in hex and a path", at + 1);
        let (sum, path) = line.split_once(char::is_whitespace).ok_or_else(wrong)?;
        let path = path.trim_start().trim_start_matches('*').trim_start_matches("./");
        if !is_sum(sum) || path.is_empty() {
            return Err(wrong());
        }
        sums.insert(path.to_owned(), sum.to_ascii_lowercase());
        if sums.len() > FILES_MAX {
            return Err(format!("{SUMS_FILE} has more than {FILES_MAX} lines"));
        }
    }
    Ok(sums)
}

/// The sum in a file beside an archive: its first word.
pub(super) fn first(text: &str) -> Option<String> {
    text.split_whitespace().next().filter(|word| is_sum(word)).map(str::to_ascii_lowercase)
}

/// Holds the files against their sums. Gives the files that have none.
///
/// # Errors
/// The first file that differs or is missing, with both sums.
pub(super) fn compare(files: &[FileSum], expected: &BTreeMap<String, String>) -> Result<Vec<String>, String> {
    let found: BTreeMap<&str, &FileSum> = files.iter().map(|file| (file.path.as_str(), file)).collect();
    for (path, sum) in expected {
        match found.get(path.as_str()) {
            None => return Err(format!("{path:?} is missing; it is listed with the SHA-256 {sum}")),
            Some(file) if file.sha256 != *sum => {
                return Err(format!("{path:?} has the SHA-256 {}; expected {sum}", file.sha256));
            }
            Some(_) => {}
        }
    }
    let listed: BTreeSet<&str> = expected.keys().map(String::as_str).collect();
    let unlisted = found.keys().filter(|path| !listed.contains(*path) && **path != SUMS_FILE);
    Ok(unlisted.map(|path| (*path).to_owned()).collect())
}

/// Has the folder of a repository this hash of ClawHub: SHA-256 of the lines path, bytes and sum, with a NUL between them,
/// sorted by path? The hub sorts as people do, which depends on a locale: without case, or by bytes.
pub(super) fn is_content_hash(files: &[FileSum], expected: &str) -> bool {
    let mut by_bytes: Vec<&FileSum> = files.iter().collect();
    by_bytes.sort_by(|one, other| one.path.cmp(&other.path));
    let mut by_letters = by_bytes.clone();
    by_letters.sort_by_cached_key(|file| collated(&file.path));
    let hash = |files: &[&FileSum]| {
        let lines: Vec<String> =
            files.iter().map(|file| format!("{}\0{}\0{}", file.path, file.bytes, file.sha256)).collect();
        hex(&Sha256::digest(lines.join("\n").as_bytes()))
    };
    [by_bytes, by_letters].iter().any(|files| hash(files).eq_ignore_ascii_case(expected))
}

/// What the order of most locales compares first: punctuation before digits before letters, then case.
fn collated(path: &str) -> (Vec<(u8, char)>, String) {
    let class = |c: char| match c {
        '_' => 0,
        '-' => 1,
        '.' => 2,
        '/' => 3,
        c if c.is_ascii_digit() => 5,
        c if c.is_alphabetic() => 6,
        _ => 4,
    };
    let swapped = path.chars().map(|c| if c.is_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
    (path.chars().map(|c| (class(c), c.to_ascii_lowercase())).collect(), swapped.collect())
}

/// Is this a SHA-256 in hex?
pub(super) fn is_sum(text: &str) -> bool {
    text.len() == SUM_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, content: &str) -> FileSum {
        let sha256 = hex(&Sha256::digest(content.as_bytes()));
        FileSum { path: path.to_owned(), bytes: content.len() as u64, sha256 }
    }

    #[test]
    fn files_are_held_against_their_sums() {
        let files = [file("SKILL.md", "a"), file("b/c.md", "b"), file(SUMS_FILE, "x")];
        let line = |file: &FileSum, mark: &str| format!("{}  {mark}{}\n", file.sha256.to_uppercase(), file.path);
        let sums = parse(&format!("# sums\n{}\n{}", line(&files[0], "*"), line(&files[1], "./"))).unwrap();
        assert_eq!(compare(&files, &sums), Ok(Vec::new()));
        assert_eq!(compare(&files, &parse(&line(&files[0], "")).unwrap()), Ok(vec!["b/c.md".to_owned()]));
        let changed = [file("SKILL.md", "changed"), file("b/c.md", "b")];
        assert!(compare(&changed, &sums).unwrap_err().contains("\"SKILL.md\" has the SHA-256"));
        assert!(compare(&files[1..], &sums).unwrap_err().contains("\"SKILL.md\" is missing"));
        for text in ["nonsense", "abc  SKILL.md", &files[0].sha256] {
            assert!(parse(text).unwrap_err().contains("line 1"), "{text}");
        }
        let sum = &files[0].sha256;
        assert_eq!(first(&format!("{sum}  skill.zip\n")).as_ref(), Some(sum));
        assert_eq!((first("<html>"), first("")), (None, None));
    }

    #[test]
    fn files_of_sums_are_read_within_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SUMS_FILE);
        assert_eq!(read(&path).unwrap(), None);
        let most = usize::try_from(SUMS_BYTES_MAX).unwrap();
        std::fs::write(&path, "x".repeat(most)).unwrap();
        assert_eq!(read(&path).unwrap().map(|text| text.len()), Some(most));
        std::fs::write(&path, "x".repeat(most + 1)).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let sum = "a".repeat(SUM_DIGITS);
        let lines = |count: usize| (0..count).map(|at| format!("{sum}  {at}\n")).collect::<String>();
        assert_eq!(parse(&lines(FILES_MAX)).map(|sums| sums.len()), Ok(FILES_MAX));
        assert!(parse(&lines(FILES_MAX + 1)).unwrap_err().contains("more than"));
    }

    #[test]
    fn the_hash_of_a_folder_is_that_of_the_hub() {
        let files = [file("SKILL.md", "a"), file("a.md", "b"), file("references/x.md", "c")];
        let hash = |order: [usize; 3]| {
            let line = |at: usize| format!("{}\0{}\0{}", files[at].path, files[at].bytes, files[at].sha256);
            hex(&Sha256::digest(order.map(line).join("\n").as_bytes()))
        };
        // By bytes, and as a locale sorts them.
        assert!(is_content_hash(&files, &hash([0, 1, 2])) && is_content_hash(&files, &hash([1, 2, 0])));
        assert!(!is_content_hash(&files, &hash([2, 1, 0])) && !is_content_hash(&files[1..], &hash([0, 1, 2])));
    }
}
