//! `[usage]`: usage events (spec 3, Usage).

use serde::Serialize;

use super::key::{Key, Table};
use super::reader::Reader;

/// `[usage]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Usage {
    /// Days that usage events, and the sums of single days, are kept.
    pub retention_days: u32,
}

impl Default for Usage {
    fn default() -> Self {
        Self { retention_days: 90 }
    }
}

impl Table for Usage {
    const KEYS: &'static [Key] = &[Key::integer(
        "retention_days",
        1..=36_500,
        "90",
        "Days that usage events and daily sums are kept, 1 to 36500.",
    )
    .writable()];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        Self { retention_days: reader.integer("retention_days").unwrap_or(Self::default().retention_days) }
    }
}
