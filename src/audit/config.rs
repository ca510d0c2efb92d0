//! `[audit]`: the audit trail.

use crate::kernel::config::table;

table! {
    /// `[audit]`. What stays can still be verified.
    pub struct Audit {
        /// Delete audit log entries after this many days, 0 to 36500; 0 keeps them.
        retention_days: u32 => integer(0..=36_500).protected(),
    }
}

#[cfg(test)]
mod tests {
    use super::Audit;
    use crate::kernel::config::{Error, Loaded, read_table};

    fn parse(text: &str) -> Result<Loaded<Audit>, Error> {
        read_table("audit", text)
    }

    #[test]
    fn retention_is_read_and_checked() {
        assert_eq!(parse("").unwrap().config.retention_days, 0);
        assert_eq!(parse("[audit]\nretention_days = 90\n").unwrap().config.retention_days, 90);
        let error = parse("[audit]\nretention_days = -1\n").unwrap_err().to_string();
        assert!(error.contains("audit.retention_days: must be 0 to 36500"), "{error}");
    }
}
