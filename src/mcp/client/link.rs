//! Whether a server is there.

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
