//! The world seen from outside: its status and its metrics.

pub(crate) mod cli;
pub(crate) mod probe;
pub(crate) mod process;
pub(crate) mod pulse;

use std::sync::Arc;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "world",
    uses: &[],
    commands: &[Subcommand::new::<cli::Status>(3, "status", "Show the daemon's status")
        .examples(&[Example::new("status --json", "For programs")])
        .under(Group::Daemon)],
    open: |opening| {
        opening.api.add_probe(Arc::new(process::MemoryProbe));
        Ok(())
    },
    ..Domain::EMPTY
};
