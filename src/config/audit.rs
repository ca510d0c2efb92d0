//! `[audit]`: the audit trail.

use serde::Serialize;

use super::key::{Key, Table};
use super::reader::Reader;

/// The longest retention, about a century.
const DAYS: std::ops::RangeInclusive<u64> = 0..=36_500;

/// `[audit]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// Days after which entries go; 0 keeps them. What stays can still be verified.
    pub retention_days: u32,
}

impl Table for Audit {
    const KEYS: &'static [Key] =
        &[Key::integer("retention_days", DAYS, "0", "Days after which audit entries go, 0 to 36500; 0 keeps them.")
            .protected()];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        Self { retention_days: reader.integer("retention_days").unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::parse;

    #[test]
    fn retention_is_read_and_checked() {
        assert_eq!(parse("", Path::new("c")).unwrap().config.audit.retention_days, 0);
        assert_eq!(parse("[audit]\nretention_days = 90\n", Path::new("c")).unwrap().config.audit.retention_days, 90);
        let error = parse("[audit]\nretention_days = -1\n", Path::new("c")).unwrap_err().to_string();
        assert!(error.contains("audit.retention_days: must be 0 to 36500"), "{error}");
    }
}
