//! Events of the world: their log lines, and the tool that publishes one.

pub(crate) mod log;
pub(crate) mod publish;

use crate::kernel::cli::{Group, Resource, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "event",
    uses: &["tool"],
    brings: |brought| brought.add([publish::TOOL]),
    commands: &[Subcommand::of(66, "event", "Publish events that triggers act on", &[Resource::at("/api/events")])
        .under(Group::Automation)],
    ..Domain::EMPTY
};
