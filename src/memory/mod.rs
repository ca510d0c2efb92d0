//! Tools over the memory of agents.

pub(crate) mod grant;
pub(crate) mod list;
pub(crate) mod recall;
mod rows;
pub(crate) mod store;

use std::sync::Arc;

use agentsvc_api::memory::store::MemoryStore;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "memory",
    uses: &["tool"],
    brings: |brought| brought.add([store::TOOL, recall::TOOL, list::TOOL]),
    open: |opening| {
        opening.provide::<dyn MemoryStore>(Arc::clone(opening.store) as _);
        Ok(())
    },
    ..Domain::EMPTY
};
