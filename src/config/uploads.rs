//! `[uploads]`: files that clients send.

use agentsvc_components::kernel::limit::FILE_BYTES_MAX;
use serde::Serialize;

use super::key::{Key, Table};
use super::reader::Reader;

/// Bytes that one file may be allowed at most: each upload has a copy in a workspace, where files are bounded.
const FILE_BYTES: std::ops::RangeInclusive<u64> = 1..=FILE_BYTES_MAX;
/// Bytes that all uploads may be allowed at most.
const TOTAL_BYTES: std::ops::RangeInclusive<u64> = 1..=1 << 50;
/// The longest retention, about a century.
const DAYS: std::ops::RangeInclusive<u64> = 0..=36_500;

/// `[uploads]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Uploads {
    /// Bytes that one upload, and one file written to a workspace over HTTP, may have.
    pub max_bytes: u64,
    /// Bytes that all uploads may have together.
    pub max_total_bytes: u64,
    /// Days after which an upload is deleted; 0 keeps them.
    pub retention_days: u32,
}

impl Default for Uploads {
    fn default() -> Self {
        Self { max_bytes: 25 << 20, max_total_bytes: 10 << 30, retention_days: 0 }
    }
}

impl Table for Uploads {
    const KEYS: &'static [Key] = &[
        Key::integer("max_bytes", FILE_BYTES, "26_214_400", "Bytes that one file may have, 1 to 67108864.").writable(),
        Key::integer(
            "max_total_bytes",
            TOTAL_BYTES,
            "10_737_418_240",
            "Bytes that all uploads may have together; more are refused.",
        )
        .writable(),
        Key::integer("retention_days", DAYS, "0", "Days after which an upload is deleted; 0 keeps them.").writable(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let default = Self::default();
        Self {
            max_bytes: reader.integer("max_bytes").unwrap_or(default.max_bytes),
            max_total_bytes: reader.integer("max_total_bytes").unwrap_or(default.max_total_bytes),
            retention_days: reader.integer("retention_days").unwrap_or(default.retention_days),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::parse;

    #[test]
    fn bounds_are_read_and_checked() {
        let uploads = parse("[uploads]\nmax_bytes = 10\nretention_days = 7\n", Path::new("c")).unwrap().config.uploads;
        assert_eq!((uploads.max_bytes, uploads.max_total_bytes, uploads.retention_days), (10, 10 << 30, 7));
        let error = parse("[uploads]\nmax_bytes = 0\n", Path::new("c")).unwrap_err().to_string();
        assert!(error.contains("c:2:13: uploads.max_bytes: must be 1 to 67108864"), "{error}");
    }
}
