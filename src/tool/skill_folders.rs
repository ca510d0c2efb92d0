//! Folders of the home that an agent's commands may read: those of its skills, whose texts name scripts in them.

use std::path::PathBuf;
use std::sync::Arc;

use agentsvc_components::manifest::Manifest;

/// Which folders, by manifest. Must not wait for the disk.
type Of = dyn Fn(&Manifest) -> Vec<PathBuf> + Send + Sync;

/// Says which folders an agent's commands may read. The default: none.
#[derive(Clone, Default)]
pub(crate) struct SkillFolders(Option<Arc<Of>>);

impl SkillFolders {
    /// Those that `of` says.
    pub(crate) fn new(of: impl Fn(&Manifest) -> Vec<PathBuf> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(of)))
    }

    /// Those of an agent of this manifest.
    pub(super) fn of(&self, manifest: &Manifest) -> Vec<PathBuf> {
        self.0.as_ref().map(|of| of(manifest)).unwrap_or_default()
    }
}
