//! Entries of the memory that agents keep (spec 2, Memory).

mod cli;
pub mod config;
pub(crate) mod recall;
mod rows;
mod tools;

use std::sync::Arc;

use agentsvc_api::proactive_memory::search::MemorySearch;
use agentsvc_api::proactive_memory::settings::ProactiveMemorySettings;
use agentsvc_api::proactive_memory::store::EntryStore;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use recall::Recaller;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "proactive_memory",
    uses: &["auto_dream", "config", "manifest", "memory", "session", "tool", "turn"],
    brings: |brought| brought.add([tools::search::TOOL, tools::update::TOOL, tools::forget::TOOL]),
    commands: &[Subcommand::group::<cli::Memory>(26, "memory", "Search, list, export and import memory entries")
        .examples(&[
            Example::new("memory search 'favourite tea' --agent assistant", "Find what an agent remembers"),
            Example::new("memory export assistant --output memory.json", "Export the memory of an agent"),
        ])
        .under(Group::Abilities)],
    open: |opening| {
        opening.provide::<dyn EntryStore>(Arc::clone(opening.store) as _);
        let api = Arc::downgrade(opening.api);
        let search = move || api.upgrade()?.services.get::<dyn MemorySearch>();
        let (bridge, store) = (opening.api.bridge.clone(), opening.store);
        opening.settings.set(Recaller::new(Box::new(search), Arc::clone(store) as _, Arc::clone(store) as _, bridge));
        opening.provide::<dyn ProactiveMemorySettings>(Arc::new(config::InForce(opening.settings.clone())));
        Ok(())
    },
    ..Domain::EMPTY
};
