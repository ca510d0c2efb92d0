//! `[server]`: the HTTP server.

use std::time::Duration;

use agentsvc_components::kernel::limit;

use crate::kernel::config::table;

table! {
    /// `[server]`.
    pub struct Server {
        /// Milliseconds that requests wait for the world to load at the start, before they are refused with 503; 0 to
        /// 60000.
        loading_wait_ms: u32 = limit::LOADING_MS_MAX => integer(0..=60_000).at_restart(),
    }
}

impl Server {
    /// How long a request waits.
    pub fn loading_wait(&self) -> Duration {
        Duration::from_millis(self.loading_wait_ms.into())
    }
}
