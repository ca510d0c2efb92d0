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
        Example::new("budget", "Show the global budget, and what is spent of it"),
        Example::new("budget update --daily-limit-usd 10", "Set the global budget"),
        Example::of("update", "budget update --daily-limit-usd 10", "At most $10 a day for all agents"),
        Example::of("update", "budget update --monthly-limit-usd 100 --hourly-token-limit 500000", "Several limits"),
        Example::of("update", "budget update --daily-limit-usd 0", "No daily limit"),
        Example::of("agents-update", "budget agents-update scout --daily-limit-usd 2", "At most $2 a day for an agent"),
        Example::new("budget list", "List the agents by what they cost"),
    ])
    .alone("show")
    .under(Group::Operations)],
    ..Domain::EMPTY
};
