//! Auto-dream: agents that are idle consolidate their memory (spec 3).

mod cli;
pub mod config;

use std::sync::Arc;

use agentsvc_api::auto_dream::settings::DreamSettings;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "auto_dream",
    uses: &["config", "usage"],
    commands: &[Subcommand::group::<cli::Dream>(28, "dream", "Show, start and stop the consolidation of memory")
        .examples(&[
            Example::new("dream status", "List the agents that consolidate their memory"),
            Example::new("dream run assistant", "Consolidate the memory of an agent now"),
        ])
        .under(Group::Abilities)],
    open: |opening| {
        opening.provide::<dyn DreamSettings>(Arc::new(config::InForce(opening.settings.clone())));
        Ok(())
    },
    ..Domain::EMPTY
};
