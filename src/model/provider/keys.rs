//! Which key a call gets, and where keys come from; see the text of [`super`].

use agentsvc_components::manifest::ModelChoice;
use agentsvc_components::turn::outcome::FailureCode;

use super::overrides::KeptKey;
use super::{DriverKind, Provider, Providers, Secret};
use crate::kernel::host::origin_of;
use crate::model::bedrock::keys::whole;
use crate::model::error::CallError;

/// Why a key that is there is not used.
const FOR_ANOTHER: &str = "the key in the vault was set for another base URL; set it again to use it here";

impl Providers {
    /// Where the key of the provider comes from; `None` when there is none.
    pub fn key_source(&self, provider: &Provider) -> Option<&'static str> {
        let kept = self.overrides.source(&provider.name);
        kept.or_else(|| self.has_variable(provider).then_some("environment"))
    }

    /// Is the key of the provider in the environment?
    pub(super) fn has_variable(&self, provider: &Provider) -> bool {
        self.read_key(provider, provider.api_key_env.as_deref()).is_some()
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
        let Some(origin) = origin_of(base_url) else {
            let message = format!("The base_url of provider {} is not an http or https URL.", provider.name);
            return Err(CallError::last(FailureCode::ProviderRefused, message));
        };
        let named = self.named(choice, base_url)?;
        // Not what else runs on this machine: any program of any user, and commands of agents, may listen there.
        let is_own = origin_of(&provider.base_url).as_ref() == Some(&origin) || self.trusted_origins.contains(&origin);
        let mut key = self.read_key(provider, named);
        let mut lost = None;
        if key.is_none() && is_own {
            match self.overrides.key(&provider.name) {
                KeptKey::There(_) if !self.is_kept_for(provider, base_url) => lost = Some(FOR_ANOTHER.to_owned()),
                KeptKey::There(kept) => key = Some(kept),
                KeptKey::Lost(why) => lost = Some(why),
                KeptKey::None => {}
            }
            if key.is_none() && named.is_none() && self.is_configured(provider, base_url) {
                key = self.read_key(provider, provider.api_key_env.as_deref());
            }
        }
        let required = named.is_some() || (provider.needs_key && is_own);
        if key.is_none() && required {
            let variable = named.or(provider.api_key_env.as_deref());
            return Err(no_key(&provider.name, variable, lost.as_deref()));
        }
        Ok(key)
    }

    /// The key in a variable that the configuration names for a provider: it goes where the configuration has the provider.
    pub(super) fn configured_key(
        &self,
        provider: &Provider,
        base_url: &str,
        variable: &str,
    ) -> Result<Secret, CallError> {
        let key = self.is_configured(provider, base_url).then(|| self.read_key(provider, Some(variable))).flatten();
        key.ok_or_else(|| no_key(&provider.name, Some(variable), None))
    }

    /// May what the vault keeps of the provider go to `base_url`? A key that was set while clients had the provider elsewhere
    /// goes there only, and any other does not go where clients have put the provider since.
    fn is_kept_for(&self, provider: &Provider, base_url: &str) -> bool {
        match self.overrides.key_origin(&provider.name) {
            Some(origin) => origin_of(base_url).as_deref() == Some(&*origin),
            None => self.is_configured(provider, base_url),
        }
    }

    /// Is `base_url` not one that clients of the API have put in the place of the configured one, or of the same origin?
    fn is_configured(&self, provider: &Provider, base_url: &str) -> bool {
        let Some(set) = self.overrides.base_url(&provider.name) else { return true };
        let configured = self.get(&provider.name).and_then(|known| origin_of(&known.base_url));
        let asked = origin_of(base_url);
        asked != origin_of(&set) || asked == configured
    }

    /// Why the key in the vault cannot go where the provider is asked, if that is so.
    pub fn key_problem(&self, provider: &Provider) -> Option<String> {
        let is_there = matches!(self.overrides.key(&provider.name), KeptKey::There(_));
        let is_for_another = is_there && !self.is_kept_for(provider, &self.base_url_of(provider));
        is_for_another.then(|| FOR_ANOTHER.to_owned())
    }

    /// The key that a variable holds, with what belongs to it in others.
    fn read_key(&self, provider: &Provider, variable: Option<&str>) -> Option<Secret> {
        whole(provider, variable, self.key_of(variable), self.environment)
    }

    pub(super) fn key_of(&self, variable: Option<&str>) -> Option<Secret> {
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
