//! Keeps what was granted fresh: refresh tokens are turned in, and grants exchanged for what calls go with.

use agentsvc_api::http::error_codes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::provider::accounts::ProviderError;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{DeviceFlow, exchange};
use crate::model::http::Clients;
use crate::model::provider::overrides::{Grant, Login, Overrides, now_secs};

/// After a failure nobody is asked again for so long, so that a provider that is down does not hold up every call.
const PAUSE: Duration = Duration::from_secs(10);

/// Refreshes sign-ins. One provider at a time, so that a refresh token is turned in once.
pub(in crate::provider) struct Refresher {
    overrides: Arc<Overrides>,
    flows: BTreeMap<Box<str>, DeviceFlow>,
    clients: Clients,
    /// When a provider failed last, and with what.
    failed: Mutex<BTreeMap<Box<str>, (Instant, Grant)>>,
}

impl Refresher {
    /// For the sign-ins in `overrides`.
    pub(in crate::provider) const fn new(
        overrides: Arc<Overrides>,
        flows: BTreeMap<Box<str>, DeviceFlow>,
        clients: Clients,
    ) -> Self {
        Self { overrides, flows, clients, failed: Mutex::const_new(BTreeMap::new()) }
    }

    /// What asks the servers of sign-ins.
    pub(in crate::provider) const fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Gets a token that holds, if the one there is nearly over. What goes wrong is noted at the sign-in, where the next
    /// call and the provider's detail find it.
    pub(in crate::provider) async fn refresh(&self, provider: &str) {
        if self.stale(provider).await.is_none() {
            return;
        }
        let mut failed = self.failed.lock().await;
        // Somebody else may have done it while this one waited.
        let Some(login) = self.stale(provider).await else { return };
        if failed.get(provider).is_some_and(|(at, grant)| at.elapsed() < PAUSE && *grant == login.grant) {
            return;
        }
        let Some(flow) = self.flows.get(provider) else { return };
        match self.renew(provider, flow, &login).await {
            Ok(()) => drop(failed.remove(provider)),
            Err(error) => {
                tracing::warn!(provider, %error, "a sign-in could not be refreshed");
                failed.insert(provider.into(), (Instant::now(), login.grant.clone()));
                let problem = format!("the sign-in could not be refreshed: {error}");
                self.overrides.change_login(provider, &login.grant, |login| login.problem = Some(problem));
            }
        }
    }

    /// The sign-in of a provider when its token is over, or nearly.
    async fn stale(&self, provider: &str) -> Option<Login> {
        let (overrides, name) = (Arc::clone(&self.overrides), provider.to_owned());
        let login = tokio::task::spawn_blocking(move || overrides.login(&name)).await.ok()??;
        login.is_stale(now_secs()).then_some(login)
    }

    async fn renew(&self, provider: &str, flow: &DeviceFlow, login: &Login) -> Result<(), ProviderError> {
        let mut grant = login.grant.clone();
        let now = now_secs();
        if grant.expires_at.is_some_and(|end| now + 60 >= end)
            && let Some(next) = self.turn_in(flow, &grant).await?
        {
            grant = next;
            self.store(provider, &login.grant, Login::new(grant.clone(), login.is_exchanged)).await?;
        }
        let Some(url) = flow.exchange_url.as_deref().filter(|_| login.is_exchanged) else { return Ok(()) };
        let answer = exchange::exchange(&self.clients, provider, url, &grant.access_token).await?;
        let session = answer.session().filter(|_| answer.status == 200);
        let session = session.ok_or_else(|| answer.failure("the exchange of the token"))?;
        self.overrides.change_login(provider, &grant, |login| {
            (login.session, login.problem) = (Some(session), None);
        });
        Ok(())
    }

    /// The next grant for the refresh token, where there is one.
    async fn turn_in(&self, flow: &DeviceFlow, grant: &Grant) -> Result<Option<Grant>, ProviderError> {
        let Some(refresh_token) = &grant.refresh_token else { return Ok(None) };
        let fields = [
            ("client_id", &*flow.client_id),
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token.expose()),
        ];
        let answer = exchange::post(&self.clients, &flow.token_url, &fields).await?;
        let next = answer.grant().filter(|_| answer.error().is_none());
        let next = next.ok_or_else(|| answer.failure("the refresh of the token"))?;
        // A server that gives no new one lets the old one stand (RFC 6749, 6).
        let refresh_token = next.refresh_token.clone().or_else(|| grant.refresh_token.clone());
        Ok(Some(Grant { refresh_token, ..next }))
    }

    /// The old refresh token is spent: the new one must be on disk before anything else.
    async fn store(&self, provider: &str, before: &Grant, login: Login) -> Result<(), ProviderError> {
        let (overrides, name, before) = (Arc::clone(&self.overrides), provider.to_owned(), before.clone());
        let stored = crate::provider::on_disk(move || overrides.renew_login(&name, &before, login)).await?;
        stored.map_err(|error| {
            tracing::error!(%error, "a refreshed sign-in could not be stored");
            ProviderError::NotKept {
                code: error_codes::VAULT_UNAVAILABLE,
                message: "the vault is unavailable".to_owned(),
            }
        })
    }
}
