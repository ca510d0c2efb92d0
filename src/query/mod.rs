//! Queries on the command line.

pub(crate) mod cli;

use crate::kernel::cli::{Group, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "query",
    uses: &[],
    commands: &[Subcommand::new::<cli::Query>(18, "query", "Query the running world").under(Group::Operations)],
    ..Domain::EMPTY
};
