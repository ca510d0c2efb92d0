//! `[snapshots]`: copies of the whole world, and how long they stay.

use crate::kernel::config::table;

table! {
    /// `[snapshots]`.
    pub struct Snapshots {
        /// Create a snapshot before a restore, a migration and the deletion of 100 agents or more.
        automatic: bool = true => flag().protected(),
        /// Number of automatic snapshots to keep, 1 to 500.
        keep: u32 = 10 => integer(1..=500).protected(),
        /// Delete automatic snapshots after this many days, 0 to 36500; 0 keeps them.
        max_age_days: u32 = 30 => integer(0..=36_500).protected(),
        /// Number of manual snapshots to keep, 0 to 500; 0 keeps all.
        keep_manual: u32 => integer(0..=500).protected(),
    }
}

#[cfg(test)]
mod tests {
    use super::Snapshots;
    use crate::kernel::config::{Error, Loaded, read_table};

    fn parse(text: &str) -> Result<Loaded<Snapshots>, Error> {
        read_table("snapshots", text)
    }

    #[test]
    fn what_stays_is_read_and_checked() {
        let read = |text: &str| parse(text).map(|loaded| loaded.config);
        assert_eq!(read("").unwrap(), Snapshots::default());
        let text = "[snapshots]\nautomatic = false\nkeep = 2\nmax_age_days = 0\nkeep_manual = 3\n";
        let expected = Snapshots { automatic: false, keep: 2, max_age_days: 0, keep_manual: 3 };
        assert_eq!(read(text).unwrap(), expected);
        assert!(read("[snapshots]\nkeep = 0\n").unwrap_err().to_string().contains("snapshots.keep: must be 1 to 500"));
    }
}
