//! SIGHUP: the same as `POST /api/config/reload`.

use std::sync::Arc;

use agentsvc_api::config::configuration::{ConfigError, ConfigProblem, Configuration};
use agentsvc_components::Actor;

use super::Live;

/// SIGHUP reads the configuration anew.
pub(in crate::daemon) fn watch(runtime: &tokio::runtime::Runtime, live: Arc<Live>) {
    runtime.spawn(async move {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut hangups) = signal(SignalKind::hangup()) else {
            return tracing::warn!("cannot listen for SIGHUP; use POST /api/config/reload");
        };
        while hangups.recv().await.is_some() {
            let live = Arc::clone(&live);
            let reloaded = tokio::task::spawn_blocking(move || live.reload(Actor::System)).await;
            match reloaded {
                Ok(Ok(_)) => {}
                Ok(Err(ConfigError::Invalid(problems))) => {
                    for ConfigProblem { line, column, key, message } in problems {
                        tracing::error!("config.toml:{line}:{column}: {key}: {message}");
                    }
                    tracing::error!("the current configuration is unchanged");
                }
                Ok(Err(error)) => tracing::error!(%error, "the configuration could not be reloaded"),
                Err(error) => tracing::error!(%error, "reloading the configuration was interrupted"),
            }
        }
    });
}
