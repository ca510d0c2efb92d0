//! Hours as routes read them. Implemented where the disk is known.

use agentsvc_systems::history::Hour;

use crate::http::error::ContentError;

/// Reads hours that are over. The call may touch the disk: on a tokio worker use `spawn_blocking`.
pub trait HistoryStore: Send + Sync + 'static {
    /// Gives `take` the hours from one on and before another, counted from 1970, the oldest first.
    ///
    /// # Errors
    /// [`ContentError`]: the store cannot be read.
    fn hours(&self, from: i64, to: i64, take: &mut dyn FnMut(Hour)) -> Result<(), ContentError>;
}
