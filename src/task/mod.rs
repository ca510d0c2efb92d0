//! Tools over the task queue.

pub(crate) mod claim;
pub(crate) mod complete;
pub mod config;
pub(crate) mod list;
pub(crate) mod post;
pub(crate) mod shape;
pub(crate) mod status;

use crate::kernel::cli::{Group, Resource, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "task",
    uses: &["tool"],
    brings: |brought| brought.add([claim::TOOL, complete::TOOL, list::TOOL, post::TOOL, status::TOOL]),
    commands: &[Subcommand::of(
        53,
        "task",
        "Post tasks for agents, and follow them",
        &[Resource::at("/api/tasks").without(&["/api/tasks/list"])],
    )
    .under(Group::Automation)],
    ..Domain::EMPTY
};
