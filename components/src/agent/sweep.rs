//! The erasing of what an agent has left behind.

use serde::{Deserialize, Serialize};

use crate::kernel::effect::Effect;
use crate::kernel::id::AgentId;
use crate::kernel::outcome::Outcome;

/// Erase the traces, the memory and the knowledge of an agent that is gone; comes back as [`AgentSwept`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepAgent(pub AgentId);

impl Effect for SweepAgent {}

/// The traces, the memory and the knowledge of an agent that is gone were erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSwept(pub AgentId);

impl Outcome for AgentSwept {
    const NAME: &'static str = "SweptAgent";
}
