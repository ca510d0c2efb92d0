//! Triggers: what bounds the agents that events wake.

pub mod config;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "trigger",
    commands: &[Subcommand::of(
        50,
        "trigger",
        "Make agents act on events",
        &[Resource::at("/api/triggers").of_agents().columns(&[
            ("ID", "/id"),
            ("AGENT", "/agent"),
            ("EVENT", "/pattern"),
            ("PROMPT", "/prompt_template"),
            ("ENABLED", "/enabled"),
            ("FIRES", "/fire_count"),
        ])],
    )
    .examples(&[
        Example::new(
            "trigger create --agent assistant --pattern '{\"custom\": {\"event_type\": \"deployed\"}}' \
             --prompt-template 'Check the site: {{event}}'",
            "Start a turn of an agent on each event of a type; `agentsvc event create` publishes one",
        ),
        Example::new("trigger fires assistant", "Show the outcomes of the only trigger of an agent"),
    ])
    .under(Group::Automation)],
    ..Domain::EMPTY
};
