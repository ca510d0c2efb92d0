//! `[snapshots]`: copies of the whole world, and how long they stay.

use serde::Serialize;

use super::key::{Key, Table};
use super::reader::Reader;

/// How many may be kept.
const KEEP: std::ops::RangeInclusive<u64> = 1..=500;
/// The same of manual ones; 0 keeps all.
const KEEP_MANUAL: std::ops::RangeInclusive<u64> = 0..=500;
/// The longest age, about a century.
const DAYS: std::ops::RangeInclusive<u64> = 0..=36_500;

/// `[snapshots]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snapshots {
    /// Whether one is taken before a restore, a migration and the deletion of many agents.
    pub automatic: bool,
    /// Automatic ones that stay, the newest.
    pub keep: u32,
    /// Days after which automatic ones go; 0 keeps them.
    pub max_age_days: u32,
    /// Manual ones that stay, the newest; 0 keeps all.
    pub keep_manual: u32,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self { automatic: true, keep: 10, max_age_days: 30, keep_manual: 0 }
    }
}

impl Table for Snapshots {
    const KEYS: &'static [Key] = &[
        Key::flag(
            "automatic",
            "true",
            "Whether the daemon takes one before a restore, a migration and the deletion of 100 agents or more.",
        )
        .protected(),
        Key::integer("keep", KEEP, "10", "Automatic snapshots that stay, the newest, 1 to 500.").protected(),
        Key::integer("max_age_days", DAYS, "30", "Days after which automatic snapshots go, 0 to 36500; 0 keeps them.")
            .protected(),
        Key::integer(
            "keep_manual",
            KEEP_MANUAL,
            "0",
            "Snapshots taken by clients that stay, the newest, 0 to 500; 0 keeps all.",
        )
        .protected(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let default = Self::default();
        Self {
            automatic: reader.flag("automatic").unwrap_or(default.automatic),
            keep: reader.integer("keep").unwrap_or(default.keep),
            max_age_days: reader.integer("max_age_days").unwrap_or(default.max_age_days),
            keep_manual: reader.integer("keep_manual").unwrap_or(default.keep_manual),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Snapshots;
    use crate::config::parse;

    #[test]
    fn what_stays_is_read_and_checked() {
        let read = |text: &str| parse(text, Path::new("c")).map(|loaded| loaded.config.snapshots);
        assert_eq!(read("").unwrap(), Snapshots::default());
        let text = "[snapshots]\nautomatic = false\nkeep = 2\nmax_age_days = 0\nkeep_manual = 3\n";
        let expected = Snapshots { automatic: false, keep: 2, max_age_days: 0, keep_manual: 3 };
        assert_eq!(read(text).unwrap(), expected);
        assert!(read("[snapshots]\nkeep = 0\n").unwrap_err().to_string().contains("snapshots.keep: must be 1 to 500"));
    }
}
