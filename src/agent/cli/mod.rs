//! `agent`: create, list, show and delete agents.

mod kill;
mod list;
mod new;
mod show;

use clap::Subcommand;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::{Error, Run};

/// Subcommands of `agent`.
#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// Create an agent from an agent type, a manifest, or options
    New(new::New),
    /// List the agents
    List(list::List),
    /// Show one agent
    Show(show::Show),
    /// Delete agents
    Kill(kill::Kill),
}

impl Run for Agent {
    fn run(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::New(command) => command.run(context),
            Self::List(command) => command.run(context),
            Self::Show(command) => command.run(context),
            Self::Kill(command) => command.run(context),
        }
    }
}
