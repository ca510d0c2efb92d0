//! The skills that an agent keeps as they are in its mode Stable.

use agentsvc_components::manifest::Manifest;

/// Knows the skills of this home. The daemon provides it.
pub trait FrozenSkills: Send + Sync {
    /// The skills that an agent of this manifest has now, each as `<name>@<hash>`. Blocks for a moment after a start.
    fn of(&self, manifest: &Manifest) -> Vec<Box<str>>;
}
