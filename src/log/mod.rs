//! The log on the command line and for those who follow it.

pub(crate) mod cli;
mod hub;

use crate::kernel::cli::{Group, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "log",
    uses: &[],
    commands: &[Subcommand::new::<cli::Logs>(8, "logs", "Show or follow the log").under(Group::Operations)],
    ..Domain::EMPTY
};
