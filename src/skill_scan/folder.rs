//! Scans a folder: every name in it, and every text.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use super::{EXCERPT_CHARS_MAX, Finding, Place, Scan, manifest};
use crate::kernel::disk;
use crate::kernel::text_formats::split_front_matter;

/// Directories within directories.
const DEPTH_MAX: usize = 16;
/// Files and directories of a folder.
const ENTRIES_MAX: usize = 10_000;
/// Bytes of a text; one that is larger cannot be scanned.
const TEXT_BYTES_MAX: u64 = 8 << 20;
/// Bytes of all texts.
const TOTAL_BYTES_MAX: u64 = 64 << 20;
/// Bytes at the beginning of a larger file that are scanned nonetheless: models are shown no more of one.
const SHOWN_BYTES: u64 = (256 << 10) + 1;
/// Bytes at the beginning of a file that show whether it is a text.
const HEAD_BYTES: usize = 8 << 10;

/// Programs, by the endings of their names: a model does not take what they say for instructions.
const PROGRAMS: &[&str] = &[
    "py",
    "pyi",
    "js",
    "mjs",
    "cjs",
    "jsx",
    "ts",
    "tsx",
    "sh",
    "bash",
    "zsh",
    "fish",
    "ps1",
    "bat",
    "cmd",
    "rb",
    "pl",
    "pm",
    "php",
    "lua",
    "go",
    "rs",
    "c",
    "h",
    "cc",
    "cpp",
    "hpp",
    "cs",
    "java",
    "kt",
    "swift",
    "scala",
    "r",
    "jl",
    "sql",
    "css",
    "scss",
    "v",
    "wat",
    "dockerfile",
    "makefile",
];
/// Texts, whatever bytes are in them: a zero byte keeps none of them from the scan.
const TEXTS: &[&str] =
    &["md", "mdx", "markdown", "txt", "prompt", "toml", "yaml", "yml", "json", "html", "htm", "rst", "csv"];

/// Why a folder cannot be scanned.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// It is larger than what is scanned: it must not be used.
    #[error("{0}")]
    TooLarge(String),
    /// It cannot be read.
    #[error("cannot read {0}: {1}")]
    Unreadable(String, io::Error),
}

/// Scans a folder and all that is in it. Blocks on the disk. The folder must not change meanwhile: scan what is staged.
///
/// # Errors
/// [`ScanError::TooLarge`] with more than 10,000 entries, more than 16 directories in each other, a text of more than 8 MiB or
/// texts of more than 64 MiB; [`ScanError::Unreadable`] when the disk fails.
pub fn scan_folder(folder: &Path) -> Result<Scan, ScanError> {
    let mut walk = Walk { folder, scan: Scan::default(), entries: 0, bytes: 0 };
    walk.dir(folder, 0)?;
    Ok(walk.scan)
}

struct Walk<'a> {
    folder: &'a Path,
    scan: Scan,
    entries: usize,
    bytes: u64,
}

impl Walk<'_> {
    fn dir(&mut self, dir: &Path, depth: usize) -> Result<(), ScanError> {
        if depth > DEPTH_MAX {
            return Err(ScanError::TooLarge(format!("more than {DEPTH_MAX} directories within each other")));
        }
        let unreadable = |error| ScanError::Unreadable(self.name(dir), error);
        let paths = disk::entries(dir).map_err(unreadable)?;
        self.entries += paths.len();
        if self.entries > ENTRIES_MAX {
            return Err(ScanError::TooLarge(format!("more than {ENTRIES_MAX} files and directories")));
        }
        for path in paths {
            let name = self.name(&path);
            let kind = fs::symlink_metadata(&path).map_err(|error| ScanError::Unreadable(name.clone(), error))?;
            if kind.is_dir() {
                self.dir(&path, depth + 1)?;
            } else if kind.is_file() {
                self.file(&path, &name, kind.len())?;
            } else {
                let rule = if kind.is_symlink() { "link" } else { "forbidden_file" };
                self.scan.refuse(whole(&name, rule));
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: &str, length: u64) -> Result<(), ScanError> {
        let is_text = is_in(TEXTS, &ending(name)) || is_in(PROGRAMS, &ending(name));
        if length > TEXT_BYTES_MAX && is_text {
            return Err(ScanError::TooLarge(format!("{name}: a text of more than {} MiB", TEXT_BYTES_MAX >> 20)));
        }
        let most = if length > TEXT_BYTES_MAX { SHOWN_BYTES } else { u64::MAX };
        self.bytes += length.min(most);
        if self.bytes > TOTAL_BYTES_MAX {
            return Err(ScanError::TooLarge(format!("files of more than {} MiB", TOTAL_BYTES_MAX >> 20)));
        }
        let mut bytes = Vec::new();
        let read = disk::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
        read.map_err(|error| ScanError::Unreadable(name.to_owned(), error))?;
        self.scan.add_file(name, &bytes);
        Ok(())
    }

    fn name(&self, path: &Path) -> String {
        path.strip_prefix(self.folder).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// Scans one file of a folder.
pub(super) fn scan_file(scan: &mut Scan, name: &str, bytes: &[u8]) {
    let parts = Path::new(name).components();
    if !parts.into_iter().all(|part| matches!(part, std::path::Component::Normal(_))) {
        return scan.refuse(whole(name, "traversal"));
    }
    let ending = ending(name);
    if ending == "pth" {
        return scan.refuse(whole(name, "forbidden_file"));
    }
    if !is_in(TEXTS, &ending) && bytes[..bytes.len().min(HEAD_BYTES)].contains(&0) {
        return;
    }
    let text = String::from_utf8_lossy(bytes);
    let base = name.rsplit('/').next().unwrap_or(name);
    match ending.as_str() {
        "toml" => manifest::toml(scan, name, &text),
        "json" if base == "package.json" => manifest::package(scan, name, &text),
        "md" | "mdx" | "markdown" => {
            // Split as the loader splits it: what is a head for one must not be a body for the other.
            let (head, body) = split_front_matter(&text);
            let head = head.unwrap_or_default();
            let line = 1 + text[..text.len() - body.len()].matches('\n').count();
            scan.add_text(Place::FrontMatter, name, 2, head);
            manifest::head(scan, name, head);
            scan.add_text(Place::Body, name, line, body);
        }
        ending if is_in(PROGRAMS, ending) => scan.add_text(Place::Code, name, 1, &text),
        _ => scan.add_text(Place::Body, name, 1, &text),
    }
}

/// A finding about a file as a whole.
pub(super) fn whole(name: &str, rule: &'static str) -> Finding {
    let excerpt: String = name.chars().filter(|c| !c.is_control()).take(EXCERPT_CHARS_MAX).collect();
    Finding { file: name.to_owned(), line: 0, rule, excerpt }
}

/// The ending of a name in lower case; of one without, the name itself.
fn ending(name: &str) -> String {
    let base = name.rsplit('/').next().unwrap_or(name);
    base.rsplit('.').next().unwrap_or(base).to_ascii_lowercase()
}

fn is_in(list: &[&str], ending: &str) -> bool {
    list.contains(&ending)
}
