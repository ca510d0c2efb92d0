//! What the routes ask of the accounts.

use agentsvc_api::http::error_codes;
use agentsvc_api::provider::audit_kinds;
use std::sync::Arc;

use agentsvc_api::http::blocking;
use agentsvc_api::provider::accounts::{
    Detected, LoginStarted, LoginState, ProviderCredentials, ProviderDetail, ProviderError, ProviderTested,
    ProviderView,
};
use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::kernel::limit;
use agentsvc_systems::audit::NoteAction;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{Credentials, detect, oauth, on_disk, probe, view};
use crate::kernel::vault;
use crate::model::provider::overrides::Login;
use crate::model::provider::{DriverKind, Secret};
use crate::provider::config::provider_url;

impl ProviderCredentials for Credentials {
    fn list(&self) -> Vec<ProviderView> {
        let providers = self.providers();
        providers.iter().map(|provider| view::line(&providers, provider, &self.parts.device_flows)).collect()
    }

    fn detail(&self, name: &str) -> Option<ProviderDetail> {
        let providers = self.providers();
        let provider = providers.get(name)?;
        Some(view::detail(&providers, provider, &self.parts.device_flows, &self.parts.overrides))
    }

    fn set_key(self: Arc<Self>, name: String, key: String) -> BoxFuture<'static, Result<(), ProviderError>> {
        let key = Zeroizing::new(key);
        through(async move {
            self.takes_a_key(&name)?;
            let key = checked(&key)?;
            let _alone = self.changing.lock().await;
            self.note(audit_kinds::PROVIDER_KEY_SET, json!({ "provider": name })).await?;
            let (overrides, provider) = (Arc::clone(&self.parts.overrides), name.clone());
            on_disk(move || overrides.put_key(&provider, key)).await?.map_err(not_kept)?;
            tracing::info!(provider = name, "a key was stored in the vault");
            self.keys_changed().await;
            Ok(())
        })
    }

    fn remove_key(self: Arc<Self>, name: String) -> BoxFuture<'static, Result<bool, ProviderError>> {
        through(async move {
            self.provider(&name)?;
            let _alone = self.changing.lock().await;
            self.flows.forget(&name);
            let (overrides, provider) = (Arc::clone(&self.parts.overrides), name.clone());
            if !on_disk(move || overrides.is_kept(&provider)).await?.map_err(not_kept)? {
                return Ok(false);
            }
            self.note(audit_kinds::PROVIDER_KEY_REMOVED, json!({ "provider": name })).await?;
            let (overrides, provider) = (Arc::clone(&self.parts.overrides), name.clone());
            let was_there = on_disk(move || overrides.remove(&provider)).await?.map_err(not_kept)?;
            if was_there {
                tracing::info!(provider = name, "a key was deleted from the vault");
                self.keys_changed().await;
            }
            Ok(was_there)
        })
    }

    fn test(
        self: Arc<Self>,
        name: String,
        model: Option<String>,
    ) -> BoxFuture<'static, Result<ProviderTested, ProviderError>> {
        through(async move {
            self.provider(&name)?;
            let tests = "too many provider tests are running; try again later";
            let _turn = self.tests.try_acquire().map_err(|_| ProviderError::TooMany(tests.to_owned()))?;
            let asked = probe::Asked { providers: self.providers(), name, model: model.unwrap_or_default() };
            probe::test(&self.drivers, &self.parts.bridge, asked).await
        })
    }

    fn set_url(
        self: Arc<Self>,
        name: String,
        url: Option<String>,
    ) -> BoxFuture<'static, Result<String, ProviderError>> {
        through(async move {
            let provider = self.provider(&name)?;
            if provider.driver == DriverKind::Builtin {
                return Err(ProviderError::NotOfThisKind(format!("provider {name} does not use the network")));
            }
            let unfit = |message: String| ProviderError::Unfit { field: "url", message };
            let url = url.map(|url| provider_url(&url).map_err(unfit)).transpose()?;
            if let Some(url) = &url {
                let is_local = view::is_local(&provider);
                self.parts.web.vet(url, is_local).await.map_err(|error| unfit(error.to_string()))?;
            }
            let _alone = self.changing.lock().await;
            let status = if url.is_some() { "updated" } else { "removed" };
            let base_url = url.as_deref().unwrap_or(&provider.base_url);
            let details = json!({ "provider": name, "base_url": base_url, "status": status });
            self.note(audit_kinds::PROVIDER_URL_SET, details).await?;
            let (accounts, provider_name) = (Arc::clone(&self), name.clone());
            let base_urls = on_disk(move || accounts.endpoints.set(&provider_name, url)).await?.map_err(|error| {
                tracing::error!(%error, "the endpoint of a provider could not be stored");
                ProviderError::NotKept {
                    code: error_codes::NOT_STORED,
                    message: "the URL could not be stored".to_owned(),
                }
            })?;
            self.parts.overrides.set_base_urls(base_urls);
            let in_force = self.providers().base_url_of(&provider).into_string();
            tracing::info!(provider = name, base_url = in_force, "the base URL of a provider was set");
            Ok(in_force)
        })
    }

    fn detect(self: Arc<Self>, name: String) -> BoxFuture<'static, Result<Detected, ProviderError>> {
        Box::pin(async move {
            let provider = self.provider(&name)?;
            let base_url = self.providers().base_url_of(&provider);
            let probe = detect::runtime(&name).ok_or_else(|| {
                let known = detect::names().collect::<Vec<_>>().join(", ");
                ProviderError::NotOfThisKind(format!("provider {name} is not a local runtime; local runtimes: {known}"))
            })?;
            Ok(detect::look(&self.near, probe, &name, &base_url).await)
        })
    }

    fn start_login(self: Arc<Self>, name: String) -> BoxFuture<'static, Result<LoginStarted, ProviderError>> {
        Box::pin(async move {
            self.provider(&name)?;
            let flow = self.flow_of(&name)?;
            self.flows.start(self.refresher.clients(), &name, flow).await
        })
    }

    fn poll_login(
        self: Arc<Self>,
        name: String,
        poll_id: Uuid,
    ) -> BoxFuture<'static, Result<LoginState, ProviderError>> {
        through(async move {
            self.provider(&name)?;
            let flow = self.flow_of(&name)?.clone();
            let mut pending = self.flows.find(&name, poll_id)?.lock_owned().await;
            let oauth::Polled { state, grant } = pending.poll(self.refresher.clients(), &flow).await?;
            let Some(grant) = grant else { return Ok(state) };
            let _alone = self.changing.lock().await;
            // Whoever removed the key meanwhile ended the sign-in too.
            self.flows.find(&name, poll_id)?;
            self.note(audit_kinds::PROVIDER_SIGNED_IN, json!({ "provider": name })).await?;
            let login = Login::new(grant, flow.exchange_url.is_some());
            let (overrides, provider) = (Arc::clone(&self.parts.overrides), name.clone());
            on_disk(move || overrides.put_login(&provider, login)).await?.map_err(not_kept)?;
            let state = pending.authorized();
            tracing::info!(provider = name, "a sign-in completed; its token was stored in the vault");
            // What does not work now is tried again with the first call, and told in the provider's detail.
            self.refresher.refresh(&name).await;
            self.keys_changed().await;
            Ok(state)
        })
    }
}

/// Work that goes on when whoever asked for it is gone, so that disk, memory and world always say the same.
fn through<T: Send + 'static>(
    work: impl Future<Output = Result<T, ProviderError>> + Send + 'static,
) -> BoxFuture<'static, Result<T, ProviderError>> {
    let task = blocking::spawn(work);
    Box::pin(async move {
        task.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a provider operation was interrupted");
            Err(ProviderError::NotKept { code: error_codes::NOT_STORED, message: "interrupted".to_owned() })
        })
    })
}

impl Credentials {
    /// Puts a change on record when all but the disk allows it, before it is made: one that then fails leaves an entry, one that
    /// is made never lacks it.
    async fn note(&self, kind: AuditKind, details: Value) -> Result<(), ProviderError> {
        let entry = NoteAction { kind, agent: None, details };
        self.parts.bridge.ask(entry).await.map_err(ProviderError::World)
    }

    pub(super) fn takes_a_key(&self, name: &str) -> Result<(), ProviderError> {
        let provider = self.provider(name)?;
        if provider.driver == DriverKind::Builtin {
            return Err(ProviderError::NotOfThisKind(format!("provider {name} does not use a key")));
        }
        Ok(())
    }

    fn flow_of(&self, name: &str) -> Result<&oauth::DeviceFlow, ProviderError> {
        let flow = self.parts.device_flows.get(name);
        flow.ok_or_else(|| ProviderError::NotOfThisKind(format!("provider {name} does not support sign-in; set a key")))
    }
}

/// A key as a header can carry it. What is wrong is said without the key.
pub(super) fn checked(text: &str) -> Result<Secret, ProviderError> {
    let unfit = |message: &str| ProviderError::Unfit { field: "api_key", message: message.to_owned() };
    let key = text.trim();
    if key.is_empty() {
        return Err(unfit("must not be empty"));
    }
    if key.len() > limit::PROVIDER_KEY_BYTES_MAX {
        return Err(unfit("is longer than 8192 bytes"));
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(unfit("must be printable ASCII without spaces"));
    }
    Ok(Secret::new(key))
}

/// The log gets the reason, with its paths; the client does not.
fn not_kept(error: vault::Error) -> ProviderError {
    tracing::error!(%error, "the vault is unavailable");
    let message = "the vault is unavailable and nothing was changed; see the daemon's log for the reason".to_owned();
    ProviderError::NotKept { code: error_codes::VAULT_UNAVAILABLE, message }
}

#[cfg(test)]
mod tests {
    use super::checked;

    #[test]
    fn keys_are_what_headers_carry_and_never_said_back() {
        assert_eq!(checked(" sk-abc\n").unwrap().expose(), "sk-abc");
        for wrong in ["", "  ", "sk secret", "sk\nsecret", "sk\u{0}secret", "sécret", &"s".repeat(8_193)] {
            let error = checked(wrong).unwrap_err().to_string();
            assert!(error.starts_with("api_key: ") && !error.contains("secret"), "{error}");
        }
        assert!(checked(&"s".repeat(8_192)).is_ok());
    }
}
