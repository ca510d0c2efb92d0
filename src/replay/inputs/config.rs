//! `[inputs]`: the input log (docs/replay.md).

use std::time::Duration;

use super::InputSettings;
use crate::kernel::config::table;

table! {
    /// `[inputs]`.
    pub struct Inputs {
        /// Record inputs so that steps can be replayed.
        enabled: bool = true => flag().at_restart(),
        /// Hours to keep inputs, 1 to 8760.
        keep_hours: u32 = 24 => integer(1..=8_760).at_restart(),
        /// Maximum size of all inputs in megabytes, 16 to 1000000.
        max_mb: u32 = 1_024 => integer(16..=1_000_000).at_restart(),
    }
}

impl Inputs {
    /// What the log keeps.
    pub fn settings(&self) -> InputSettings {
        InputSettings {
            keep: Duration::from_secs(u64::from(self.keep_hours) * 3_600),
            max_bytes: u64::from(self.max_mb) << 20,
        }
    }
}
