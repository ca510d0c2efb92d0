//! Extensions (spec 2): the templates that clients installed from paths, and the command line.

mod cli;
mod templates;

use std::sync::Arc;

use agentsvc_api::extension::templates::ExtensionTemplates;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use templates::Kept;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "extension",
    uses: &["mcp"],
    commands: &[Subcommand::group::<cli::Extensions>(40, "ext", "List, install and remove extensions")
        .examples(&[
            Example::new("ext search github", "Find an extension"),
            Example::new("ext install github --env GITHUB_TOKEN", "Install it with a credential from the environment"),
        ])
        .under(Group::Connections)],
    open: |opening| {
        opening.provide::<dyn ExtensionTemplates>(Arc::new(Kept::new(opening.home.extensions_dir())));
        Ok(())
    },
    ..Domain::EMPTY
};
