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
            error => NotVetted::Refused(refusal(error)),
        };
        Box::pin(async move { self.web.vet_for_stranger(&url).await.map_err(not_vetted) })
    }

    fn seal(&self, secret: &str) -> Result<String, String> {
        self.vault.seal(SEALED_AS, secret.as_bytes()).map_err(|error| error.to_string())
    }
}

/// Why notifications may not go to a URL. Names that have no address and those of private ones are not told apart: clients
/// need no key, and would learn which names this network has.
fn refusal(error: Error) -> String {
    match error {
        Error::Lookup { .. } | Error::Private { .. } | Error::LocalName(_) | Error::Timeout(_) => {
            tracing::debug!(%error, "an A2A client gave a URL for notifications that is not public");
            "The host has no public address. Only the operator can allow other hosts.".to_owned()
        }
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_network_are_not_told() {
        let host = || "db.intern.example".to_owned();
        let hidden = [
            Error::Lookup { host: host(), why: "no such name".to_owned() },
            Error::Private { host: host(), class: "private" },
            Error::LocalName(host()),
            Error::Timeout(30),
        ];
        let said: std::collections::BTreeSet<String> = hidden.into_iter().map(refusal).collect();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(refusal(Error::Port(25)).contains("25"));
    }
}
