//! Entries of the memory that agents keep (spec 2, Memory).

mod cli;
pub mod config;
mod rows;
mod tools;

use std::sync::Arc;

use agentsvc_api::proactive_memory::settings::ProactiveMemorySettings;
use agentsvc_api::proactive_memory::store::EntryStore;

use crate::kernel::cli::Subcommand;
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "proactive_memory",
    uses: &["config", "memory", "tool"],
    brings: |brought| brought.add([tools::search::TOOL, tools::update::TOOL, tools::forget::TOOL]),
    commands: &[Subcommand::group::<cli::Memory>(26, "memory", "Search, list, export and import memory entries")],
    open: |opening| {
        opening.provide::<dyn EntryStore>(Arc::clone(opening.store) as _);
        opening.provide::<dyn ProactiveMemorySettings>(Arc::new(config::InForce(opening.settings.clone())));
        Ok(())
    },
    ..Domain::EMPTY
};
