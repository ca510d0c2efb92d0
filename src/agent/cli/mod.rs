//! `agent`: create, list, show and delete agents.

mod create;
mod delete;
mod show;

use clap::Subcommand;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::{Error, Example, Heading, Run};

/// The groups of the help of `agent`.
pub(crate) const HEADINGS: &[Heading] = &[
    ("Agents", &["create", "list", "show", "clone", "update", "delete", "check"]),
    ("Talk", &["message", "command", "stop", "sessions-interrupt"]),
    (
        "Sessions",
        &[
            "session",
            "session-reset",
            "session-compact",
            "sessions",
            "sessions-create",
            "sessions-switch",
            "sessions-by-label-show",
            "sessions-trajectory",
            "history-delete",
        ],
    ),
    ("Settings", &["config", "model", "mode", "identity", "owner"]),
    ("Tools and skills", &["tools", "tools-set", "skills", "skills-set", "mcp-servers", "mcp-servers-set"]),
    ("Files and memory", &["files", "files-delete", "trust-files", "memory-export", "memory-import"]),
    ("Prompts", &["prompts-versions", "prompts-versions-create", "prompts-experiments", "prompts-experiments-create"]),
    ("Observe", &["logs", "traces", "traces-calls", "traces-calls-show", "deliveries", "metrics"]),
    ("Several agents at once", &["bulk-create", "bulk-delete", "bulk-start", "bulk-stop"]),
];

/// What the help of `agent` shows of how it is used.
pub(crate) const EXAMPLES: &[Example] = &[
    Example::new("agent create coder --name my-coder", "Create an agent from an agent type"),
    Example::new("agent model my-coder --provider anthropic --model claude-sonnet-4-5", "Change its model"),
    Example::new("agent update my-coder --tags work --tags rust", "Change some of its settings"),
    Example::of("update", "agent update my-coder --description 'Works on the site'", "Change one setting"),
    Example::of("update", "agent update my-coder --tags work --tags rust --skills git", "Lists replace what was there"),
    Example::of("update", "agent update my-coder --skills '[]'", "An empty list"),
    Example::of(
        "update",
        "agent update my-coder --capabilities '{\"network\": [\"docs.rs\"], \"shell\": [\"cargo\"]}'",
        "What it may reach and run",
    ),
    Example::new("agent delete my-coder", "Delete it"),
    Example::of(
        "create",
        "agent create coder --name my-coder",
        "From an agent type; `agentsvc agent-type list` lists them",
    ),
    Example::of("create", "agent create ./my.toml", "From a manifest file"),
    Example::of("create", "agent create --name scout --prompt 'Answer in one sentence.'", "From options alone"),
];

/// Subcommands of `agent`.
#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// Create an agent from an agent type, a manifest, or options
    Create(create::Create),
    /// Show one agent
    Show(show::Show),
    /// Delete agents
    #[command(visible_alias = "kill")]
    Delete(delete::Delete),
}

impl Run for Agent {
    fn run(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::Create(command) => command.run(context),
            Self::Show(command) => command.run(context),
            Self::Delete(command) => command.run(context),
        }
    }
}
