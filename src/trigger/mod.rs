//! Triggers: what bounds the agents that events wake.

pub mod config;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain { name: "trigger", uses: &[], ..Domain::EMPTY };
