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
        Example::of(
            "create",
            "workflow create --name digest --steps '[{\"name\": \"find\", \"agent_name\": \"researcher\", \"prompt\": \"{{input}}\"}]'",
            "One step; each step may use `{{input}}`, the output of the step before",
        ),
        Example::of("create", "workflow create --name nightly --from workflow.json", "From a file with the steps"),
        Example::of("run", "workflow run nightly --input 'the open issues'", "Run it and print its output"),
        Example::of("run", "workflow run nightly --input x --json", "For programs, with the id of the run"),
        Example::new("workflow run nightly --input 'the open issues'", "Run it"),
    ])
    .under(Group::Automation)],
    ..Domain::EMPTY
};
