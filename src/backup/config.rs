//! `[backup]`: where backups go, and when one is made by itself.

use std::path::PathBuf;

use agentsvc_systems::schedule::Rule;

use crate::kernel::config::table;
use crate::kernel::config::text::directory;

table! {
    /// `[backup]`.
    pub struct Backup {
        /// Create backups on the `schedule`.
        enabled: bool => flag().writable(),
        /// Schedule in UTC: a cron expression, or `every 6h`. A backup missed while the daemon was down is created at
        /// its start.
        schedule: Box<str> = "0 3 * * *".into() => text(rule).writable(),
        /// Number of backups to keep after a scheduled one, 0 to 10000; 0 keeps all.
        keep: usize = 7 => integer(0..=10_000).protected(),
        /// Delete backups after this many days, checked after each scheduled one, 0 to 36500; 0 keeps them.
        max_age_days: u32 => integer(0..=36_500).protected(),
        /// Backup directory, an absolute path. Default: `backups` in the home.
        directory: Option<PathBuf> => text(directory).example("/srv/backups"),
        /// Include the files of agents' workspaces in backups.
        workspaces: bool = true => flag().writable(),
    }
}

/// A rule that comes again and again.
fn rule(text: &str) -> Result<Box<str>, String> {
    match Rule::parse(text) {
        Ok(Rule::Cron(_) | Rule::Every(_)) => Ok(text.into()),
        Ok(Rule::In(_) | Rule::At(_)) => Err("must be a recurring rule: a cron expression, or `every 6h`".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Backup;
    use crate::kernel::config::{Error, Loaded, read_table};

    fn parse(text: &str) -> Result<Loaded<Backup>, Error> {
        read_table("backup", text)
    }

    #[test]
    fn backups_are_read_and_checked() {
        let read = |text: &str| parse(text).map(|loaded| loaded.config);
        assert_eq!(read("").unwrap(), Backup::default());
        let text =
            "[backup]\nenabled = true\nschedule = \"every 6h\"\nkeep = 3\nmax_age_days = 30\ndirectory = \"/b\"\n";
        let backup = read(text).unwrap();
        assert_eq!((backup.enabled, &*backup.schedule, backup.keep, backup.max_age_days), (true, "every 6h", 3, 30));
        assert_eq!(backup.directory.as_deref(), Some(Path::new("/b")));
        for (text, says) in [
            ("schedule = \"in 2h\"", "must be a recurring rule"),
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
