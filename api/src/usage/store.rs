//! Usage events as routes read them. Implemented where the disk is known.

use agentsvc_components::Timestamp;
use agentsvc_components::usage::record::UsageRecord;

use crate::http::error::ContentError;

/// Which usage events to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRange {
    /// From this moment on.
    pub from: Timestamp,
    /// Before this one.
    pub to: Timestamp,
    /// Go on behind this key of an earlier answer.
    pub after: Option<Vec<u8>>,
    /// At most this many.
    pub limit: usize,
}

/// One stored usage event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// Its key, to go on behind.
    pub key: Vec<u8>,
    /// The event.
    pub record: UsageRecord,
}

/// Reads usage events. The calls may touch the disk: on a tokio worker use `spawn_blocking`.
pub trait UsageStore: Send + Sync + 'static {
    /// Usage events of a range, oldest first.
    fn usage(&self, range: &UsageRange) -> Result<Vec<UsageRow>, ContentError>;

    /// How many different agents asked a model on the days from one to another, both included, counted from 1970-01-01.
    fn active_agents(&self, from: i64, to: i64) -> Result<usize, ContentError>;
}
