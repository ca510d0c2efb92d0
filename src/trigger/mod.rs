//! Triggers: what bounds the agents that events wake.

pub mod config;

use crate::kernel::cli::{Group, Resource, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "trigger",
    commands: &[Subcommand::of(50, "trigger", "Make agents act on events", &[Resource::at("/api/triggers")])
        .under(Group::Automation)],
    ..Domain::EMPTY
};
