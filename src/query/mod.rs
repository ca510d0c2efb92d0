//! Queries on the command line.

pub(crate) mod cli;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "query",
    uses: &[],
    commands: &[Subcommand::new::<cli::Query>(18, "query", "Query the running world")
        .examples(&[
            Example::new("query 'agents where tokens > 1000 sort by tokens desc limit 20'", "Find agents"),
            Example::new("query 'turns group by state count'", "Count turns by state"),
            Example::new("query 'turns group by state count' --watch", "Again whenever the result changes"),
        ])
        .under(Group::Operations)],
    ..Domain::EMPTY
};
