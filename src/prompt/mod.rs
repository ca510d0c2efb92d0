//! Versions of system prompts, and experiments that compare them (spec 3).

pub mod config;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "prompt",
    commands: &[Subcommand::of(
        64,
        "prompt",
        "Save versions of system prompts, and compare them",
        &[Resource::at("/api/agents/{agent_id}/prompts"), Resource::at("/api/prompts")],
    )
    .headed(&[
        (
            "Versions",
            &["versions", "versions-create", "versions-show", "versions-diff", "versions-activate", "versions-delete"],
        ),
        (
            "Experiments",
            &[
                "experiments",
                "experiments-create",
                "experiments-show",
                "experiments-start",
                "experiments-pause",
                "experiments-complete",
                "experiments-metrics",
                "experiments-feedback",
                "experiments-delete",
            ],
        ),
    ])
    .examples(&[
        Example::new("prompt versions assistant", "List the saved prompts of an agent"),
        Example::new("prompt experiments assistant", "List the comparisons of prompts"),
    ])
    .under(Group::Abilities)],
    ..Domain::EMPTY
};
