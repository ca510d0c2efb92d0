//! Events of the world: their log lines, and the tool that publishes one.

mod cli;
pub(crate) mod kinds;
pub(crate) mod log;
pub(crate) mod publish;
mod sentences;

use crate::kernel::cli::{Group, Resource, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "event",
    uses: &["session", "tool"],
    brings: |brought| brought.add([publish::TOOL]),
    commands: &[Subcommand::group::<cli::Event>(66, "event", "List recent events, and publish events for triggers")
        .with(&[Resource::at("/api/events")])
        .examples(cli::EXAMPLES)
        .noting(&[("list", kinds::listed)])
        .under(Group::Automation)],
    ..Domain::EMPTY
};
