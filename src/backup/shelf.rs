//! The directory of backups: what is in it, and what goes.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit::BACKUPS_LISTED_MAX;
use chrono::DateTime;

use super::error::{Error, io};
use super::files::children;
use super::manifest::Manifest;
use super::name::check_filename;
use super::{create, read};

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// A file of the directory.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name.
    pub filename: String,
    /// Bytes.
    pub size_bytes: u64,
    /// What it is, or why it is none.
    pub manifest: Result<Manifest, String>,
    /// When it was made; by the file where there is no manifest.
    pub created_at: Timestamp,
}

/// The backups in `dir`, the newest first. Of those beyond [`BACKUPS_LISTED_MAX`] nothing is known.
///
/// # Errors
/// The directory cannot be read.
pub fn list(dir: &Path) -> Result<Vec<Line>, Error> {
    let mut found = Vec::new();
    // Names grow with time.
    for (filename, path) in children(dir).map_err(io("list", dir))?.into_iter().rev().take(BACKUPS_LISTED_MAX) {
        if check_filename(&filename).is_err() {
            continue;
        }
        let Ok(metadata) = path.symlink_metadata() else { continue };
        if !metadata.is_file() {
            continue;
        }
        let manifest = read::manifest_of(&path).map_err(|error| error.to_string());
        let written = manifest.as_ref().ok().and_then(|manifest| moment(&manifest.created_at));
        let modified = metadata.modified().ok().map(of_system);
        let created_at = written.or(modified).unwrap_or(Timestamp(0));
        found.push(Line { filename, size_bytes: metadata.len(), manifest, created_at });
    }
    found.sort_by(|a, b| (b.created_at, &b.filename).cmp(&(a.created_at, &a.filename)));
    Ok(found)
}

/// The path of the backup of this name, which is a checked one; `None` when there is none.
#[must_use]
pub fn find(dir: &Path, filename: &str) -> Option<PathBuf> {
    let path = dir.join(filename);
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()).then_some(path)
}

/// What the archive at `path` says of itself.
///
/// # Errors
/// It is none.
pub fn manifest_of(path: &Path) -> Result<Manifest, Error> {
    read::manifest_of(path)
}

/// Removes a backup. False when there is none of this name, which is a checked one.
///
/// # Errors
/// The disk failed.
pub fn remove(dir: &Path, filename: &str) -> Result<bool, Error> {
    create::remove(dir, filename)
}

/// Which backups of `lines`, which stand newest first, go at `now`: all beyond the newest `keep` (0 keeps all), and those
/// older than `max_age_days` (0 keeps them). The newest stays, and so does what is none of ours.
#[must_use]
pub fn outdated(lines: &[Line], keep: usize, max_age_days: u32, now: Timestamp) -> Vec<String> {
    let oldest = now.plus_ms(-i64::from(max_age_days) * DAY_MS);
    let ours = lines.iter().filter(|line| line.manifest.is_ok() && line.filename.starts_with("agentsvc-"));
    let goes = |(at, line): &(usize, &Line)| {
        *at > 0 && (keep > 0 && *at >= keep || max_age_days > 0 && line.created_at < oldest)
    };
    ours.enumerate().filter(goes).map(|(_, line)| line.filename.clone()).collect()
}

fn moment(text: &str) -> Option<Timestamp> {
    DateTime::parse_from_rfc3339(text).ok().map(|moment| Timestamp(moment.timestamp_millis()))
}

fn of_system(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(filename: &str, days: i64) -> Line {
        let created_at = Timestamp(days * DAY_MS);
        Line { filename: filename.to_owned(), size_bytes: 1, manifest: Ok(Manifest::default()), created_at }
    }

    #[test]
    fn the_newest_stay_and_the_old_go() {
        let lines = ["agentsvc-e", "agentsvc-d", "agentsvc-c", "agentsvc-b"];
        let lines: Vec<Line> = lines.into_iter().zip([100, 99, 98, 10]).map(|(name, days)| line(name, days)).collect();
        let now = Timestamp(100 * DAY_MS);
        assert!(outdated(&lines, 0, 0, now).is_empty());
        assert_eq!(outdated(&lines, 2, 0, now), ["agentsvc-c", "agentsvc-b"]);
        assert_eq!(outdated(&lines, 0, 30, now), ["agentsvc-b"]);
        assert_eq!(outdated(&lines, 3, 1, now), ["agentsvc-c", "agentsvc-b"]);
        let later = Timestamp(1_000 * DAY_MS);
        assert_eq!(outdated(&lines, 1, 1, later).len(), 3, "the newest stays however old it is");
    }

    #[test]
    fn what_is_not_ours_stays() {
        let mut broken = line("agentsvc-a", 1);
        broken.manifest = Err("it is damaged".to_owned());
        let lines = [line("agentsvc-b", 9), line("mine", 2), broken];
        assert!(outdated(&lines, 1, 1, Timestamp(100 * DAY_MS)).is_empty());
    }

    #[test]
    fn a_list_says_what_is_no_backup() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a.tar.zst", "b.txt", ".c.tar.zst", "agentsvc-1.tar.zst.body"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("d.tar.zst")).unwrap();
        let lines = list(dir.path()).unwrap();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].manifest.as_ref().unwrap_err().contains("no backup"), "{lines:?}");
        assert!(find(dir.path(), "a.tar.zst").is_some() && find(dir.path(), "d.tar.zst").is_none());
        assert!(remove(dir.path(), "a.tar.zst").unwrap() && !remove(dir.path(), "a.tar.zst").unwrap());
        assert!(list(&dir.path().join("none")).unwrap().is_empty());
    }
}
