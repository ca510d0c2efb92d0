//! The tool that runs a workflow.

pub(crate) mod run;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "workflow",
    uses: &["tool"],
    brings: |brought| brought.add([run::TOOL]),
    commands: &[Subcommand::of(
        52,
        "workflow",
        "Create and run workflows",
        &[Resource::at("/api/workflows").called("workflows")],
    )
    .examples(&[
        Example::new("workflow create --name nightly --from workflow.json", "Create a workflow from a file"),
        Example::new("workflow run nightly --input 'the open issues'", "Run it"),
    ])
    .under(Group::Automation)],
    ..Domain::EMPTY
};
