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
        &[Key::new("tick_hz", "20", "Beats per second of the time-driven systems, 1 to 1000.")];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let default = Self::default();
        let tick_hz = reader.integer("tick_hz", 1..=1000).and_then(|hz| hz.try_into().ok());
        Self { tick_hz: tick_hz.unwrap_or(default.tick_hz) }
    }
}
