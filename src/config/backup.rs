//! `[backup]`: where backups go, and when one is made by itself.

use std::path::PathBuf;

use agentsvc_systems::schedule::Rule;
use serde::Serialize;

use super::key::{Key, Table};
use super::reader::Reader;

/// Backups that stay.
const KEEP: std::ops::RangeInclusive<u64> = 0..=10_000;
/// The longest age, about a century.
const DAYS: std::ops::RangeInclusive<u64> = 0..=36_500;
/// Every night.
const NIGHTLY: &str = "0 3 * * *";

/// `[backup]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Backup {
    /// Are backups made by themselves?
    pub enabled: bool,
    /// When, in UTC: a cron expression, or `every 6h`.
    pub schedule: Box<str>,
    /// Backups that stay, the newest; 0 keeps all.
    pub keep: usize,
    /// Days after which a backup goes; 0 keeps them.
    pub max_age_days: u32,
    /// Where they are; `None` is `{home}/backups`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Do the files of agents' workspaces go along?
    pub workspaces: bool,
}

impl Default for Backup {
    fn default() -> Self {
        let schedule = NIGHTLY.into();
        Self { enabled: false, schedule, keep: 7, max_age_days: 0, directory: None, workspaces: true }
    }
}

impl Table for Backup {
    const KEYS: &'static [Key] = &[
        Key::flag("enabled", "false", "Make backups by themselves, as `schedule` says.").writable(),
        Key::text(
            "schedule",
            "\"0 3 * * *\"",
            "When, in UTC: a cron expression, or `every 6h`. What was due while the daemon was down is made at its start.",
        )
        .writable(),
        Key::integer("keep", KEEP, "7", "Backups that stay after a scheduled one, the newest, 0 to 10000; 0 keeps all.")
            .protected(),
        Key::integer(
            "max_age_days",
            DAYS,
            "0",
            "Days after which backups go, looked at with each scheduled one, 0 to 36500; 0 keeps them.",
        )
        .protected(),
        Key::text(
            "directory",
            "\"/srv/backups\"",
            "Where backups are, an absolute path. Default: `backups` in the home.",
        )
        .example(),
        Key::flag("workspaces", "true", "Whether backups hold the files of agents' workspaces.").writable(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let default = Self::default();
        Self {
            enabled: reader.flag("enabled").unwrap_or(default.enabled),
            schedule: reader.parsed("schedule", rule).unwrap_or(default.schedule),
            keep: reader.integer("keep").unwrap_or(default.keep),
            max_age_days: reader.integer("max_age_days").unwrap_or(default.max_age_days),
            directory: reader.parsed("directory", super::top::directory),
            workspaces: reader.flag("workspaces").unwrap_or(default.workspaces),
        }
    }
}

/// A rule that comes again and again.
fn rule(text: &str) -> Result<Box<str>, String> {
    match Rule::parse(text) {
        Ok(Rule::Cron(_) | Rule::Every(_)) => Ok(text.into()),
        Ok(Rule::In(_) | Rule::At(_)) => Err("must come again: a cron expression, or `every 6h`".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Backup;
    use crate::config::parse;

    #[test]
    fn backups_are_read_and_checked() {
        let read = |text: &str| parse(text, Path::new("c")).map(|loaded| loaded.config.backup);
        assert_eq!(read("").unwrap(), Backup::default());
        let text =
            "[backup]\nenabled = true\nschedule = \"every 6h\"\nkeep = 3\nmax_age_days = 30\ndirectory = \"/b\"\n";
        let backup = read(text).unwrap();
        assert_eq!((backup.enabled, &*backup.schedule, backup.keep, backup.max_age_days), (true, "every 6h", 3, 30));
        assert_eq!(backup.directory.as_deref(), Some(Path::new("/b")));
        for (text, says) in [
            ("schedule = \"in 2h\"", "must come again"),
            ("schedule = \"61 * * * *\"", "schedule"),
            ("keep = -1", "must be 0 to 10000"),
            ("directory = \"b\"", "absolute"),
            ("keeps = 1", "did you mean `keep`"),
        ] {
            let error = read(&format!("[backup]\n{text}\n")).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
