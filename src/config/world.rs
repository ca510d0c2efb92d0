//! `[world]`: the world loop.

use serde::Serialize;

use super::key::{Key, Table};
use super::reader::Reader;

/// `[world]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct World {
    /// Beats per second of the time-driven systems, 1 to 1000. Arrivals never wait for a beat.
    pub tick_hz: u16,
}

impl Default for World {
    fn default() -> Self {
        Self { tick_hz: 20 }
    }
}

impl Table for World {
    const KEYS: &'static [Key] =
        &[Key::integer("tick_hz", 1..=1000, "20", "Beats per second of the time-driven systems, 1 to 1000.")
            .writable()
            .at_restart()];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        Self { tick_hz: reader.integer("tick_hz").unwrap_or(Self::default().tick_hz) }
    }
}
