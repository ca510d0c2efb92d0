//! The tool that moves an agent's goals forward.

pub(crate) mod update;

use crate::kernel::cli::{Group, Resource, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "goal",
    uses: &["tool"],
    brings: |brought| brought.add([update::TOOL]),
    commands: &[Subcommand::of(54, "goal", "Set goals, and follow their progress", &[Resource::at("/api/goals")])
        .under(Group::Automation)],
    ..Domain::EMPTY
};
