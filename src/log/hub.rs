//! The hub of `/api/logs/stream` listens to every line of the log.

use std::sync::Arc;

use agentsvc_api::log::hub::LogHub;

use crate::kernel::logging::Tap;

impl Tap for Arc<LogHub> {
    fn wanted(&self, line: &str) -> bool {
        self.wants(line)
    }

    fn publish(&self, line: Arc<str>) {
        LogHub::publish(self, line);
    }
}
