//! Directories of archives that are kept for a while: backups and snapshots. What one is and what is known of it, its domain
//! says; which there are, which go and how one goes is the same for both.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::{Actor, Timestamp};
use chrono::DateTime;
use serde::Serialize;
use serde_json::json;

use super::disk;
use super::exchange::Exchange;

/// Milliseconds of a day.
pub(crate) const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// How many archives of one kind stay, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    /// The newest that stay; 0 keeps all.
    pub(crate) keep: usize,
    /// Days after which one goes; 0 keeps them.
    pub(crate) max_age_days: u32,
}

impl Retention {
    /// Does the archive that was made at `at`, and before which `newer` ones stand, go at `now`?
    pub(crate) fn lets_go(self, newer: usize, at: Timestamp, now: Timestamp) -> bool {
        let oldest = now.plus_ms(-i64::from(self.max_age_days) * DAY_MS);
        self.keep > 0 && newer >= self.keep || self.max_age_days > 0 && at < oldest
    }
}

/// What `read` knows of the files in `dir`, the last name first: names grow with time. At most `most` files are looked at.
///
/// # Errors
/// The directory cannot be read. That there is none is no error.
pub(crate) fn list<T>(dir: &Path, most: usize, read: impl FnMut(PathBuf) -> Option<T>) -> io::Result<Vec<T>> {
    Ok(disk::entries(dir)?.into_iter().rev().take(most).filter_map(read).collect())
}

/// Deletes the files of an archive in `dir`. The first is the one without which it is none: a kill leaves no archive, or a
/// whole one.
///
/// # Errors
/// Those of the disk.
pub(crate) fn delete(dir: &Path, files: &[PathBuf]) -> io::Result<()> {
    for file in files {
        disk::remove_file(file)?;
        disk::sync_dir(dir)?;
    }
    Ok(())
}

/// Deletes what retention takes away, each on record before it goes. One that cannot be deleted or recorded stays; gives
/// those that went. `noun` is what logs call one, and `key` what audit entries name it by.
pub(crate) fn prune<N: Serialize + Display, E: Display>(
    exchange: &Exchange,
    kind: AuditKind,
    (noun, key): (&str, &str),
    outdated: Vec<N>,
    delete: impl Fn(&N) -> Result<(), E>,
) -> Vec<N> {
    let goes = |name: &N| {
        let details = json!({ (key): name, "reason": "retention" });
        if let Err(refusal) = exchange.record(Actor::System, kind.clone(), details) {
            tracing::warn!(%refusal, %name, "an old {noun} is kept: its deletion could not be recorded");
            return false;
        }
        let deleted = delete(name);
        match &deleted {
            Ok(()) => tracing::info!(%name, "an old {noun} was deleted"),
            Err(error) => tracing::warn!(%error, %name, "an old {noun} could not be deleted"),
        }
        deleted.is_ok()
    };
    outdated.into_iter().filter(goes).collect()
}

/// A moment as a manifest says it.
pub(crate) fn moment(text: &str) -> Option<Timestamp> {
    DateTime::parse_from_rfc3339(text).ok().map(|moment| Timestamp(moment.timestamp_millis()))
}
