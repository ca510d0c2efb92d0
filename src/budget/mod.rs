//! Budgets: what may be spent.

pub mod config;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "budget",
    uses: &["usage"],
    commands: &[Subcommand::of(
        57,
        "budget",
        "Show and set budgets",
        &[Resource::at("/api/budget").listed_at("/api/budget/agents").called("agents with model calls")],
    )
    .examples(&[
        Example::new("budget show", "Show the global budget, and what is spent of it"),
        Example::new("budget update --daily-limit-usd 10", "Set the global budget"),
        Example::new("budget list", "List the agents by what they cost"),
    ])
    .under(Group::Operations)],
    ..Domain::EMPTY
};
