//! Triggers: what bounds the agents that events wake.

pub mod config;

use crate::event::kinds::patterns;
use crate::kernel::cli::{Example, Group, Resource, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "trigger",
    uses: &["event"],
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
            "trigger create --agent assistant --pattern turn_failed --prompt-template 'Why did this fail? {{event}}'",
            "Start a turn of an agent on each failed turn",
        ),
        Example::of(
            "create",
            "trigger create --agent assistant --pattern turn_failed --prompt-template 'Why did this fail? {{event}}'",
            "On each failed turn; `{{event}}` becomes the event",
        ),
        Example::of(
            "create",
            "trigger create --agent assistant --pattern '{\"custom\": {\"event_type\": \"deployed\"}}' \
             --prompt-template 'Check the site: {{event}}'",
            "On each event of your own type; `agentsvc event create` publishes one",
        ),
        Example::of(
            "create",
            "trigger create --agent assistant --pattern task_posted --prompt-template '{{event}}' --cooldown-secs 60",
            "On each posted task, at most once a minute",
        ),
        Example::new("trigger fires assistant", "Show the outcomes of the only trigger of an agent"),
    ])
    .noting(&[("create", patterns)])
    .under(Group::Automation)],
    ..Domain::EMPTY
};
