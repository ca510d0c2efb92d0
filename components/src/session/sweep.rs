//! The erasing of what a session has left behind.

use serde::{Deserialize, Serialize};

use crate::kernel::effect::Effect;
use crate::kernel::id::LogId;
use crate::kernel::outcome::Outcome;

/// Erase a log that no session points at any more; comes back as [`LogSwept`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepLog(pub LogId);

impl Effect for SweepLog {}

/// A log was erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSwept(pub LogId);

impl Outcome for LogSwept {
    const NAME: &'static str = "Swept";
}
