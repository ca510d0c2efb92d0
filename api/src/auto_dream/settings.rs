//! What the configuration says of auto-dream. Implemented where the configuration is known.

use agentsvc_systems::config::auto_dream::AutoDreamSettings;

/// Tells what is in force.
pub trait DreamSettings: Send + Sync + 'static {
    /// As it is now.
    fn now(&self) -> AutoDreamSettings;
}
