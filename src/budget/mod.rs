//! Budgets: what may be spent.

pub mod config;

use crate::kernel::cli::{Group, Resource, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "budget",
    uses: &["usage"],
    commands: &[Subcommand::of(
        57,
        "budget",
        "Show and set budgets",
        &[Resource::at("/api/budget").listed_at("/api/budget/agents")],
    )
    .under(Group::Operations)],
    ..Domain::EMPTY
};
