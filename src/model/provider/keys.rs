//! Which key a call gets, and where keys come from; see the text of [`super`].

use agentsvc_components::manifest::ModelChoice;
use agentsvc_components::turn::outcome::FailureCode;

use super::overrides::KeptKey;
use super::{DriverKind, Provider, Providers, Secret};
use crate::kernel::host::{host_of, is_loopback};
use crate::model::bedrock::keys::whole;
use crate::model::error::CallError;

impl Providers {
    /// Where the key of the provider comes from; `None` when there is none.
    pub fn key_source(&self, provider: &Provider) -> Option<&'static str> {
        let kept = self.overrides.source(&provider.name);
        kept.or_else(|| self.read_key(provider, provider.api_key_env.as_deref()).map(|_| "environment"))
    }

    /// True when the provider needs no key or its key is in the vault or the environment.
    pub fn is_usable(&self, provider: &Provider) -> bool {
        !provider.needs_key || self.key_source(provider).is_some()
    }

    /// The key for a call to `base_url`; see the module text for which key may go where.
    pub(super) fn call_key(
        &self,
        choice: &ModelChoice,
        provider: &Provider,
        base_url: &str,
    ) -> Result<Option<Secret>, CallError> {
        if provider.driver == DriverKind::Builtin {
            return Ok(None);
        }
        let Some(host) = host_of(base_url) else {
            let message = format!("The base_url of provider {} is not an http or https URL.", provider.name);
            return Err(CallError::last(FailureCode::ProviderRefused, message));
        };
        let named = choice.api_key_env.as_deref().filter(|variable| !variable.is_empty());
        let own_host = host_of(&provider.base_url).as_ref() == Some(&host) || self.trusted_hosts.contains(&host);
        let may_have_own = own_host || is_loopback(&host);
        let mut key = self.read_key(provider, named);
        let mut lost = None;
        if key.is_none() && may_have_own {
            match self.overrides.key(&provider.name) {
                KeptKey::There(kept) => key = Some(kept),
                KeptKey::Lost(why) => lost = Some(why),
                KeptKey::None => {}
            }
            if key.is_none() && named.is_none() {
                key = self.read_key(provider, provider.api_key_env.as_deref());
            }
        }
        let required = named.is_some() || (provider.needs_key && own_host);
        if key.is_none() && required {
            let variable = named.or(provider.api_key_env.as_deref());
            return Err(no_key(&provider.name, variable, lost.as_deref()));
        }
        Ok(key)
    }

    /// The key that a variable holds, with what belongs to it in others.
    fn read_key(&self, provider: &Provider, variable: Option<&str>) -> Option<Secret> {
        whole(provider, variable, self.key_of(variable), self.environment)
    }

    fn key_of(&self, variable: Option<&str>) -> Option<Secret> {
        let key = (self.environment)(variable?)?;
        let key = key.trim();
        (!key.is_empty()).then(|| Secret::new(key))
    }
}

/// A call without the key that it needs.
fn no_key(provider: &str, variable: Option<&str>, lost: Option<&str>) -> CallError {
    let why = lost.map(|why| format!(" ({why})")).unwrap_or_default();
    let variable = variable.map(|name| format!("set the environment variable {name}, or ")).unwrap_or_default();
    let message = format!("No key for provider {provider}{why}: {variable}set one with `agentsvc providers set-key`.");
    CallError::last(FailureCode::ProviderAuth, message)
}
