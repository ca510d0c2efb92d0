//! Whether a server is there.

use std::time::SystemTime;

use agentsvc_components::Timestamp;

use super::connection::Connection;

/// The way to a server.
pub(super) enum Link {
    /// It is there, and what it has is offered.
    Up(Connection),
    /// A connection that answers while what it has is still to be offered, or none yet.
    Starting(Option<Connection>),
    /// Not there: why.
    Down(String),
}

impl Default for Link {
    fn default() -> Self {
        Self::Starting(None)
    }
}

/// The time of the system's clock.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
