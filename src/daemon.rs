//! Runs the daemon.

use crate::launch::Launch;

/// Runs until told to stop.
///
/// # Errors
/// Whatever ends it otherwise.
pub fn run(launch: Launch) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    tracing::info!(listen = %launch.config.api_listen, "placeholder");
    Err("the world is not wired yet".into())
}
