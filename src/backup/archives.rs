//! The directory of backups: what is in it, and what goes.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use agentsvc_api::backup::store::BackupLine;
use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit::BACKUPS_LISTED_MAX;

use super::error::{Error, io};
use super::manifest::Manifest;
use super::name::check_filename;
use super::read;
use crate::kernel::archives::{self, Retention, moment};
use crate::kernel::disk;

/// The backups in `dir` and when they were made, the newest first. Of those beyond [`BACKUPS_LISTED_MAX`] nothing is known.
pub fn list(dir: &Path) -> Result<Vec<(Timestamp, BackupLine)>, Error> {
    let mut found = archives::list(dir, BACKUPS_LISTED_MAX, line_of).map_err(io("list", dir))?;
    found.sort_by(|(a_at, a), (b_at, b)| (b_at, &b.filename).cmp(&(a_at, &a.filename)));
    Ok(found)
}

/// What is known of this file; `None` when it is no backup.
fn line_of(path: PathBuf) -> Option<(Timestamp, BackupLine)> {
    let filename = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    check_filename(&filename).ok()?;
    let metadata = path.symlink_metadata().ok().filter(|metadata| metadata.is_file())?;
    let manifest = read::manifest_of(&path).map_err(|error| error.to_string());
    let written = manifest.as_ref().ok().and_then(|manifest| moment(&manifest.created_at));
    let modified = metadata.modified().ok().map(of_system);
    let at = written.or(modified).unwrap_or(Timestamp(0));
    let (valid, problem) = (manifest.is_ok(), manifest.as_ref().err().cloned());
    let Manifest { release, step, components, counts, .. } = manifest.unwrap_or_default();
    let (created_at, size_bytes, release) = (at.to_string(), metadata.len(), valid.then_some(release));
    Some((at, BackupLine { filename, size_bytes, valid, problem, created_at, release, step, components, counts }))
}

/// The path of the backup of this name, which is a checked one; `None` when there is none.
pub fn find(dir: &Path, filename: &str) -> Option<PathBuf> {
    let path = dir.join(filename);
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()).then_some(path)
}

/// Removes a backup. False when there is none of this name, which is a checked one.
pub fn remove(dir: &Path, filename: &str) -> Result<bool, Error> {
    let path = dir.join(filename);
    let found = disk::there(path.symlink_metadata()).map_err(io("look at", &path))?;
    if !found.is_some_and(|metadata| metadata.is_file()) {
        return Ok(false);
    }
    archives::delete(dir, std::slice::from_ref(&path)).map_err(io("remove", &path))?;
    Ok(true)
}

/// Which backups of `lines`, which stand newest first, go at `now`: all beyond the newest `keep` (0 keeps all), and those
/// older than `max_age_days` (0 keeps them). The newest stays, and so does what is none of ours.
pub fn outdated(lines: &[(Timestamp, BackupLine)], keep: usize, max_age_days: u32, now: Timestamp) -> Vec<String> {
    let retention = Retention { keep, max_age_days };
    let ours = lines.iter().filter(|(_, line)| line.valid && line.filename.starts_with("agentsvc-"));
    let goes = |(n, (at, _)): &(usize, &(Timestamp, BackupLine))| *n > 0 && retention.lets_go(*n, *at, now);
    ours.enumerate().filter(goes).map(|(_, (_, line))| line.filename.clone()).collect()
}

fn of_system(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::archives::DAY_MS;

    fn line(filename: &str, days: i64) -> (Timestamp, BackupLine) {
        let at = Timestamp(days * DAY_MS);
        let line = BackupLine {
            filename: filename.to_owned(),
            size_bytes: 1,
            valid: true,
            problem: None,
            created_at: at.to_string(),
            release: None,
            step: None,
            components: Default::default(),
            counts: Default::default(),
        };
        (at, line)
    }

    #[test]
    fn the_newest_stay_and_the_old_go() {
        let lines = ["agentsvc-e", "agentsvc-d", "agentsvc-c", "agentsvc-b"];
        let lines: Vec<_> = lines.into_iter().zip([100, 99, 98, 10]).map(|(name, days)| line(name, days)).collect();
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
        broken.1.valid = false;
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
        assert!(
            !lines[0].1.valid && lines[0].1.problem.as_ref().unwrap().contains("not an agentsvc backup"),
            "{lines:?}"
        );
        assert!(find(dir.path(), "a.tar.zst").is_some() && find(dir.path(), "d.tar.zst").is_none());
        assert!(remove(dir.path(), "a.tar.zst").unwrap() && !remove(dir.path(), "a.tar.zst").unwrap());
        assert!(list(&dir.path().join("none")).unwrap().is_empty());
    }
}
