//! The log on the command line and for those who follow it.

pub(crate) mod cli;
mod files;
mod hub;

use std::sync::Arc;

use agentsvc_api::log::files::LogFiles;

use self::files::Files;
use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "log",
    uses: &[],
    open: |opening| {
        opening.provide::<dyn LogFiles>(Arc::new(Files(opening.home.logs_dir())));
        Ok(())
    },
    commands: &[Subcommand::new::<cli::Logs>(8, "logs", "Show or follow the log")
        .examples(&[
            Example::new("logs -n 200", "Print the last 200 lines"),
            Example::new("logs -f", "Follow the log of the running daemon"),
        ])
        .under(Group::Operations)],
    ..Domain::EMPTY
};
