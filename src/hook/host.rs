//! What hooks need of the daemon.

use std::sync::Arc;

use agentsvc_api::hook::host::{HookHost, HookPolicy};
use uuid::{Builder, Uuid};

use super::config::WebhookTriggers;
use crate::kernel::settings::Settings;

/// The daemon's part of hooks.
pub(super) struct Host(Settings);

impl Host {
    pub(super) fn new(settings: Settings) -> Self {
        if let Some(warning) = settings.get::<WebhookTriggers>().warning() {
            tracing::warn!("{warning}");
        }
        Self(settings)
    }
}

impl HookHost for Host {
    fn policy(&self) -> Arc<HookPolicy> {
        Arc::new(self.0.get::<WebhookTriggers>().policy())
    }

    fn random(&self) -> Result<Uuid, String> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
        Ok(Builder::from_random_bytes(bytes).into_uuid())
    }
}
