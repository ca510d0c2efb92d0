//! Tools over the task queue.

pub(crate) mod claim;
pub(crate) mod complete;
pub mod config;
pub(crate) mod list;
pub(crate) mod post;
pub(crate) mod shape;
pub(crate) mod status;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
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
        &[Resource::at("/api/tasks").without(&["/api/tasks/list"]).columns(&[
            ("ID", "/id"),
            ("TITLE", "/title"),
            ("STATUS", "/status"),
            ("ASSIGNEE", "/assignee"),
            ("CLAIMED BY", "/claimed_by"),
            ("CREATED", "/created_at"),
        ])],
    )
    .examples(&[
        Example::new("task create --title 'Sort the inbox' --assignee assistant", "Post a task"),
        Example::of("create", "task create --title 'Sort the inbox' --assignee assistant", "For an agent"),
        Example::of(
            "create",
            "task create --title 'Check the links' --description 'All pages below /docs'",
            "For any agent that claims it",
        ),
        Example::new("task list --status pending", "List those that wait"),
        Example::new("task show 'Sort the inbox'", "Show one with its result"),
    ])
    .under(Group::Automation)],
    ..Domain::EMPTY
};
