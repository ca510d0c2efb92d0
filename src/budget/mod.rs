//! Budgets: what may be spent.

pub mod config;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain { name: "budget", uses: &["usage"], ..Domain::EMPTY };
