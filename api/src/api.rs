//! What the front is made of.

use std::sync::Arc;

use crate::hub::StreamHub;
use crate::logs::LogHub;
use crate::shutdown::Shutdown;

/// Everything a route may need.
pub struct Api {
    /// Where turns speak to those who watch them.
    pub hub: Arc<StreamHub>,
    /// Where log lines go to those who watch them.
    pub logs: Arc<LogHub>,
    /// The signal to stop.
    pub shutdown: Shutdown,
}
