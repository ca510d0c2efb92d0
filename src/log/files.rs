//! The lines of the log files, read from their ends, so that their size does not matter.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use agentsvc_api::log::files::{LogFiles, StoredLines};

use crate::kernel::logging;

/// Bytes read at once on the way from a file's end to its start.
const BLOCK_BYTES: u64 = 64 << 10;
/// Bytes of the lines of one page: after a page of fewer lines than were asked for, the next goes on.
const PAGE_BYTES_MAX: u64 = 1 << 20;

/// The log files in a directory.
pub(super) struct Files(pub(super) PathBuf);

impl Files {
    /// Is there no log file? An error other than a missing directory is one.
    pub(super) fn are_none(&self) -> io::Result<bool> {
        self.newest_first().map(|files| files.is_empty())
    }

    fn newest_first(&self) -> io::Result<Vec<PathBuf>> {
        match logging::newest_first(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            other => other,
        }
    }
}

impl LogFiles for Files {
    fn before(&self, cursor: Option<&str>, limit: usize) -> io::Result<Option<StoredLines>> {
        let files = self.newest_first()?;
        let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let (first, mut end) = match cursor.map(|cursor| cursor.rsplit_once('@')) {
            None => (0, None),
            Some(place) => {
                let Some((wanted, offset)) = place else { return Ok(None) };
                let at = files.iter().position(|path| name(path).as_deref() == Some(wanted));
                let (Some(at), Ok(offset)) = (at, offset.parse::<u64>()) else { return Ok(None) };
                (at, Some(offset))
            }
        };
        let mut page = StoredLines::default();
        let mut left = PAGE_BYTES_MAX;
        for path in &files[first..] {
            let (lines, start) = match tail(path, end.take(), limit - page.lines.len(), left) {
                Ok(found) => found,
                // The oldest are deleted to make room.
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(error),
            };
            left = left.saturating_sub(lines.iter().map(|line| line.len() as u64 + 1).sum());
            page.lines.extend(lines);
            if start > 0 {
                page.next = name(path).map(|name| format!("{name}@{start}"));
                break;
            }
        }
        Ok(Some(page))
    }
}

/// The last `count` lines before `end` (by default all) of a file, the newest first, and where the first of them begins. Fewer
/// where they have more than `bytes_max` bytes, yet at least one unless `count` or `bytes_max` is 0.
fn tail(path: &Path, end: Option<u64>, count: usize, bytes_max: u64) -> io::Result<(Vec<String>, u64)> {
    let mut file = File::open(path)?;
    let size = file.seek(SeekFrom::End(0))?;
    let end = end.unwrap_or(size).min(size);
    if count == 0 || bytes_max == 0 {
        return Ok((Vec::new(), end));
    }
    let mut start = end;
    let mut bytes = Vec::new();
    // One newline more than lines: the one before the first.
    let is_enough = |bytes: &Vec<u8>| {
        let newlines = bytes.iter().filter(|byte| **byte == b'\n').count();
        newlines > count || (newlines > 1 && bytes.len() as u64 >= bytes_max)
    };
    while start > 0 && !is_enough(&bytes) {
        let size = start.min(BLOCK_BYTES);
        start -= size;
        let mut block = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        (&file).take(size).read_to_end(&mut block)?;
        block.append(&mut bytes);
        bytes = block;
    }
    // What stands before the first newline is a part of a line, unless the file begins there.
    let whole =
        if start == 0 { 0 } else { bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1) };
    let mut lines: Vec<&[u8]> = bytes[whole..].split_inclusive(|byte| *byte == b'\n').collect();
    let kept = lines.split_off(lines.len().saturating_sub(count));
    let kept_bytes: u64 = kept.iter().map(|line| line.len() as u64).sum();
    let text = |line: &&[u8]| String::from_utf8_lossy(line).trim_end_matches(['\n', '\r']).to_owned();
    Ok((kept.iter().rev().map(text).collect(), end - kept_bytes))
}

#[cfg(test)]
mod tests {
    use agentsvc_api::log::files::LogFiles as _;

    use super::{Files, tail};

    #[test]
    fn the_tail_of_a_long_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let text: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(&path, &text).unwrap();
        let last = |end, count| tail(&path, end, count, u64::MAX).unwrap();
        let (lines, start) = last(None, 2);
        assert_eq!(lines, ["line 19999", "line 19998"]);
        assert_eq!(last(Some(start), 1).0, ["line 19997"]);
        assert_eq!(last(None, 15_000).0.last().unwrap(), "line 5000");
        assert_eq!((last(None, 99_999).0.len(), last(None, 99_999).1), (20_000, 0));
        assert_eq!(last(None, 0), (Vec::new(), text.len() as u64));
        // Few bytes are a short page, and never a part of a line.
        let (lines, start) = tail(&path, None, 20_000, 1).unwrap();
        assert!(lines.len() < 20_000 && lines.last().unwrap().starts_with("line "), "{}", lines.len());
        assert_eq!(last(Some(start), 99_999).0.len(), 20_000 - lines.len());
    }

    #[test]
    fn pages_go_from_file_to_file() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files(dir.path().to_owned());
        assert!(files.are_none().unwrap() && Files(dir.path().join("none")).are_none().unwrap());
        std::fs::write(dir.path().join("daemon-2026-11-20.log"), "a\nb\n").unwrap();
        std::fs::write(dir.path().join("daemon-2026-11-21.log"), "c\nd\ne\n").unwrap();
        let (mut pages, mut cursor) = (Vec::new(), None);
        loop {
            let page = files.before(cursor.as_deref(), 2).unwrap().unwrap();
            pages.push(page.lines.join(""));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(pages, ["ed", "cb", "a"]);
        for wrong in ["", "x", "daemon-2026-11-19.log@3", "../daemon-2026-11-21.log@3", "daemon-2026-11-21.log@-1"] {
            assert_eq!(files.before(Some(wrong), 2).unwrap(), None, "{wrong}");
        }
    }
}
