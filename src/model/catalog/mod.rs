//! The model catalog (spec 2, Model catalog): which models there are, what they cost and can do, which names stand for them.
//!
//! | file | holds |
//! |---|---|
//! | [`embedded`] | what this release knows: `providers.toml` and `models/*.toml`, compiled in |
//! | [`row`] | a model as it is written: in those files, in a fetched catalog, in a request; and what is checked of it |
//! | [`model`] | a model as it is kept |
//! | [`vision`] | what the name of a model says of pictures |
//! | [`table`] | all models and aliases together, and how they are found |
//! | [`facts`] | what the world is told: prices, contexts, aliases |
//! | [`kept`] | what clients added, and a fetched catalog, on disk |
//! | [`keeper`] | the one who changes it: on disk, in memory, in the world, in this order |
//! | [`remote`] | fetching a newer one and proving whose it is |
//! | [`front`] | what the API sees |
//!
//! Three layers lie above each other: the embedded models, or those of a fetched catalog that is newer; over them the models and
//! aliases of clients; over both, for prices, `[prices]` of the configuration. Where a provider is and which key it gets never
//! comes from a fetched catalog.

mod catalog_store;
pub mod config;
pub(crate) mod embedded;
mod facts;
mod front;
mod model;
mod remote;
mod row;
mod stored;
mod table;
mod vision;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use parking_lot::RwLock;

pub use catalog_store::{CatalogStore, Parts, is_provider};
pub use embedded::{ProviderEntry, provider, providers};
pub(crate) use facts::context_tokens;
pub use facts::{Facts, facts};
pub use model::{Model, Origin, Tier, Vision};
pub(crate) use remote::key_bytes as public_key;
pub use stored::{Files, StoredCatalog};
pub use table::Table;

/// The catalog as it is now. Readers take a table and keep it as long as they need it; a change puts another in its place.
#[derive(Debug, Default)]
pub struct ModelCatalog {
    /// `None` while only the embedded one was asked for, which is then read at the first need.
    table: RwLock<Option<Arc<Table>>>,
}

impl ModelCatalog {
    /// The embedded catalog, which is read when it is first looked at.
    pub fn embedded() -> Self {
        Self::default()
    }

    /// The embedded catalog, or a newer fetched one, with what clients added.
    pub fn with(kept: &StoredCatalog) -> Self {
        let catalog = Self::default();
        if !kept.is_empty() {
            catalog.set(Table::of(kept));
        }
        catalog
    }

    /// The models and aliases as they are now.
    pub fn table(&self) -> Arc<Table> {
        if let Some(table) = &*self.table.read() {
            return Arc::clone(table);
        }
        Arc::clone(self.table.write().get_or_insert_with(|| Arc::new(Table::of(&StoredCatalog::default()))))
    }

    /// From here on it is this one.
    fn set(&self, table: Table) {
        *self.table.write() = Some(Arc::new(table));
    }
}
