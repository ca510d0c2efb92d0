//! Where the registry is, for what else is installed from it.

use std::path::PathBuf;
use std::sync::Arc;

use agentsvc_api::skill_source::sources::SourceError;

use super::config;
use super::registry::Registry;
use super::wire::Wire;
use crate::kernel::settings::Settings;

/// Finds the copy of the registry. The default knows of none.
#[derive(Clone, Default)]
pub(crate) struct RegistryPlace(Option<Known>);

#[derive(Clone)]
struct Known {
    registry: Arc<Registry>,
    wire: Wire,
    settings: Settings,
}

impl RegistryPlace {
    pub(super) fn new(registry: Arc<Registry>, wire: Wire, settings: Settings) -> Self {
        Self(Some(Known { registry, wire, settings }))
    }

    /// The directory of the copy, which is fetched if there is none.
    ///
    /// # Errors
    /// [`SourceError`].
    pub(crate) async fn find(&self) -> Result<PathBuf, SourceError> {
        let Some(Known { registry, wire, settings }) = &self.0 else {
            return Err(SourceError::NotFound("there is no registry".to_owned()));
        };
        registry.place(wire, &settings.get::<config::Registry>()).await
    }
}
