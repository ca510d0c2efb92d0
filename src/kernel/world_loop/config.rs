//! `[world]`: the world loop.

use crate::kernel::config::table;

table! {
    /// `[world]`. Arrivals never wait for a beat.
    pub struct World {
        /// Ticks per second, 1 to 1000.
        tick_hz: u16 = 20 => integer(1..=1_000).writable().at_restart(),
    }
}
