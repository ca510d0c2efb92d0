//! Usage of models: its events as they are stored, how long they are kept, and what models cost.

pub mod config;
mod rows;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain { name: "usage", uses: &[], ..Domain::EMPTY };
