//! `[uploads]`: files sent to agents.

use serde::Serialize;

use super::key::{Key, Table};
use super::reader::Reader;

/// `[uploads]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Uploads {
    /// Largest upload in bytes, 1 to 1 GiB. Larger: 413.
    pub max_bytes: u64,
}

impl Default for Uploads {
    fn default() -> Self {
        Self { max_bytes: 25 << 20 }
    }
}

impl Table for Uploads {
    const KEYS: &'static [Key] =
        &[Key::new("max_bytes", "26214400", "Largest upload in bytes, 1 to 1073741824 (1 GiB).")];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let default = Self::default();
        Self { max_bytes: reader.integer("max_bytes", 1..=1 << 30).unwrap_or(default.max_bytes) }
    }
}
