//! The tool that moves an agent's goals forward.

pub(crate) mod update;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "goal",
    uses: &["tool"],
    brings: |brought| brought.add([update::TOOL]),
    commands: &[Subcommand::of(
        54,
        "goal",
        "Set goals, and follow their progress",
        &[Resource::at("/api/goals").columns(&[
            ("ID", "/id"),
            ("TITLE", "/title"),
            ("STATUS", "/status"),
            ("AGENT", "/agent"),
            ("DUE", "/due_at"),
            ("UPDATED", "/updated_at"),
        ])],
    )
    .examples(&[
        Example::new("goal create --title 'Ship version 2' --agent assistant", "Set a goal of an agent"),
        Example::of("create", "goal create --title 'Ship version 2' --agent assistant", "A goal of an agent"),
        Example::of(
            "create",
            "goal create --title 'Write the notes' --parent-id 'Ship version 2' --due-at 2026-12-24T12:00:00Z",
            "A part of another goal, with a date",
        ),
        Example::new("goal update 'Ship version 2' --status completed", "Say that it is reached"),
    ])
    .under(Group::Automation)],
    ..Domain::EMPTY
};
