//! What A2A needs of the daemon.

use std::sync::Arc;

use agentsvc_api::a2a::host::{A2aHost, NotVetted, Policy};
use futures_util::future::BoxFuture;
use uuid::{Builder, Uuid};

use super::config::A2a;
use crate::kernel::egress::{Error, Web};
use crate::kernel::settings::Settings;
use crate::kernel::vault::Vault;

/// The name under which secrets of notifications are sealed.
pub(super) const SEALED_AS: &str = "a2a";

/// The daemon's part of A2A.
pub(super) struct Host {
    pub(super) settings: Settings,
    pub(super) web: Web,
    pub(super) vault: Vault,
}

impl A2aHost for Host {
    fn policy(&self) -> Arc<Policy> {
        Arc::new(self.settings.get::<A2a>().policy())
    }

    fn random(&self) -> Result<Uuid, String> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
        Ok(Builder::from_random_bytes(bytes).into_uuid())
    }

    fn vet(self: Arc<Self>, url: String) -> BoxFuture<'static, Result<String, NotVetted>> {
        let not_vetted = |error| match error {
            Error::Busy => NotVetted::Busy,
            error => NotVetted::Refused(error.to_string()),
        };
        Box::pin(async move { self.web.vet_for_stranger(url).await.map_err(not_vetted) })
    }

    fn seal(&self, secret: &str) -> Result<String, String> {
        self.vault.seal(SEALED_AS, secret.as_bytes()).map_err(|error| error.to_string())
    }
}
