//! `[inputs]`: the input log (docs/replay.md).

use std::time::Duration;

use serde::Serialize;

use super::key::{Key, Table};
use super::reader::Reader;
use crate::kernel::inputs::InputSettings;

/// `[inputs]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inputs {
    /// Are the inputs of the world kept?
    pub enabled: bool,
    /// Hours that they are kept.
    pub keep_hours: u32,
    /// Megabytes of all of them together.
    pub max_mb: u32,
}

impl Default for Inputs {
    fn default() -> Self {
        Self { enabled: true, keep_hours: 24, max_mb: 1_024 }
    }
}

impl Inputs {
    /// What the log keeps.
    #[must_use]
    pub fn settings(&self) -> InputSettings {
        InputSettings {
            keep: Duration::from_secs(u64::from(self.keep_hours) * 3_600),
            max_bytes: u64::from(self.max_mb) << 20,
        }
    }
}

impl Table for Inputs {
    const KEYS: &'static [Key] = &[
        Key::flag("enabled", "true", "Keep what the world takes in, so that its steps can be replayed.").at_restart(),
        Key::integer("keep_hours", 1..=8_760, "24", "Hours that inputs are kept, 1 to 8760.").at_restart(),
        Key::integer("max_mb", 16..=1_000_000, "1024", "Megabytes of all inputs together, 16 to 1000000.").at_restart(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let default = Self::default();
        Self {
            enabled: reader.flag("enabled").unwrap_or(default.enabled),
            keep_hours: reader.integer("keep_hours").unwrap_or(default.keep_hours),
            max_mb: reader.integer("max_mb").unwrap_or(default.max_mb),
        }
    }
}
