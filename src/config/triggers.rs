//! `[triggers]`: what bounds the agents that events wake.

use serde::Serialize;

use super::key::{Key, Table};
use super::reader::Reader;

/// Seconds between two fires: up to ten years.
const SECS: std::ops::RangeInclusive<u64> = 0..=315_360_000;
/// Fired turns in a row.
const DEPTH: std::ops::RangeInclusive<u64> = 1..=100;
/// Fires of one trigger in a minute.
const PER_MINUTE: std::ops::RangeInclusive<u64> = 1..=1_000_000;

/// `[triggers]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Triggers {
    /// Seconds between two fires of a trigger that has no `cooldown_secs` (spec 1, Triggers, rule 2).
    pub default_cooldown_secs: u32,
    /// Fired turns that may follow from each other in a row.
    pub max_depth: u8,
    /// Fires of one trigger in a minute for events that fired turns cause.
    pub cascade_per_minute: u32,
}

impl Default for Triggers {
    fn default() -> Self {
        Self { default_cooldown_secs: 5, max_depth: 8, cascade_per_minute: 60 }
    }
}

impl Table for Triggers {
    const KEYS: &'static [Key] = &[
        Key::integer(
            "default_cooldown_secs",
            SECS,
            "5",
            "Seconds between two fires of a trigger that has no `cooldown_secs`.",
        )
        .writable(),
        Key::integer("max_depth", DEPTH, "8", "Fired turns that may follow from each other in a row, 1 to 100.")
            .writable(),
        Key::integer(
            "cascade_per_minute",
            PER_MINUTE,
            "60",
            "Fires of one trigger in a minute for events that fired turns cause, 1 to 1000000.",
        )
        .writable(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let default = Self::default();
        Self {
            default_cooldown_secs: reader.integer("default_cooldown_secs").unwrap_or(default.default_cooldown_secs),
            max_depth: reader.integer("max_depth").unwrap_or(default.max_depth),
            cascade_per_minute: reader.integer("cascade_per_minute").unwrap_or(default.cascade_per_minute),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::parse;

    #[test]
    fn bounds_are_read_and_checked() {
        let text = "[triggers]\ndefault_cooldown_secs = 0\nmax_depth = 3\n";
        let triggers = parse(text, Path::new("c")).unwrap().config.triggers;
        assert_eq!((triggers.default_cooldown_secs, triggers.max_depth, triggers.cascade_per_minute), (0, 3, 60));
        let error = parse("[triggers]\nmax_depth = 0\n", Path::new("c")).unwrap_err().to_string();
        assert!(error.contains("c:2:13: triggers.max_depth: must be 1 to 100"), "{error}");
    }
}
