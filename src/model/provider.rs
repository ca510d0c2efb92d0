//! Providers: where models are asked, with which key, and which model is the daemon's default.
//!
//! The catalog knows the facts of providers ([`crate::model::catalog::providers`]); the configuration adds to them and overrides them.
//! Here is the live side: which of them can be asked now, and where a call goes. Any other name is
//! good too when the agent's manifest gives a `base_url`: it is then taken for an OpenAI-compatible endpoint.
//!
//! Keys come, in this order, from the variable that the manifest names (`api_key_env`), from the vault ([`overrides`]), and
//! from the provider's own variable; variables are read when a call is made. A provider's own key goes to the origin
//! (scheme, host and port) of the provider and to that of `[default_model] base_url`; a manifest's `base_url` never carries it
//! elsewhere. Which variables a manifest may name, and where each goes, is said in `named`.

mod headers;
mod keys;
mod named;
pub mod overrides;
mod secret;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use agentsvc_components::manifest::ModelChoice;
use agentsvc_components::turn::outcome::FailureCode;
use futures_util::future::BoxFuture;

pub use super::driver_kind::DriverKind;
use super::error::CallError;
use crate::kernel::host::{host_of, origin_of};
use crate::model::catalog;
use crate::model::catalog::{ModelCatalog, Vision};
pub(crate) use headers::extra_headers;
use overrides::Overrides;
pub use secret::Secret;

/// The provider that needs neither key nor network.
pub const BUILTIN: &str = "builtin";
/// Tokens of a model's context, question and answer together, where nothing better is known.
pub const CONTEXT_TOKENS_DEFAULT: u32 = 128_000;

/// One provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Its name in manifests.
    pub name: Box<str>,
    /// Who speaks with it.
    pub driver: DriverKind,
    /// Its endpoint, up to and including the version, such as `https://api.openai.com/v1`.
    pub base_url: Box<str>,
    /// The environment variable with its key, where it has one.
    pub api_key_env: Option<Box<str>>,
    /// Whether calls need a key.
    pub needs_key: bool,
    /// The model to ask when only the provider is named; empty when there is no good one.
    pub default_model: Box<str>,
    /// Tokens of its models' context, question and answer together.
    pub context_tokens: u32,
    /// The configuration says so: it holds for the models of the catalog as well.
    pub context_is_set: bool,
    /// A runtime on this machine, which serves the context that it was started with.
    pub is_local: bool,
    /// It wants the answer's bound as `max_completion_tokens`, not `max_tokens`.
    pub bounds_completion: bool,
}

impl Provider {
    /// Must the configuration say where it is?
    pub fn has_no_place(&self) -> bool {
        self.base_url.is_empty() && self.driver != DriverKind::Builtin
    }
}

/// A provider in the configuration. What is `None` stays as built in, or takes the plain default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderSettings {
    /// The name, known or new.
    pub name: String,
    /// The endpoint; must be given for a new name.
    pub base_url: Option<String>,
    /// Who speaks with it.
    pub driver: Option<DriverKind>,
    /// The environment variable with the key; an empty text means that there is none.
    pub api_key_env: Option<String>,
    /// A call without a key is pointless; by default true when `api_key_env` is given here.
    pub needs_key: Option<bool>,
    /// The model to ask when only the provider is named.
    pub default_model: Option<String>,
    /// Tokens of its models' context.
    pub context_tokens: Option<u32>,
}

/// A provider setting that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A new provider without an endpoint.
    #[error("unknown provider {name} without a base_url")]
    NoBaseUrl {
        /// The provider.
        name: String,
    },
    /// An endpoint that is no HTTP URL.
    #[error("the base_url of provider {name} is not an http or https URL")]
    BadBaseUrl {
        /// The provider.
        name: String,
    },
}

/// Where one call goes, all choices settled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The provider's name, for messages and for the record of the answer.
    pub provider: Box<str>,
    /// The model to ask for.
    pub model: Box<str>,
    /// Who speaks with it.
    pub driver: DriverKind,
    /// The endpoint.
    pub base_url: Box<str>,
    /// The key, where there is one.
    pub key: Option<Secret>,
    /// Tokens of the model's context.
    pub context_tokens: u32,
    /// The answer's bound is called `max_completion_tokens`.
    pub bounds_completion: bool,
    /// The most tokens that an answer of the model may have, where that is known.
    pub answer_tokens_max: Option<u32>,
    /// The model can be asked to think before it answers.
    pub reasons: bool,
}

/// Reads environment variables; a function, so that tests need not change the process.
pub type Environment = fn(&str) -> Option<String>;

/// All providers, by name.
#[derive(Debug)]
pub struct Providers {
    by_name: BTreeMap<Box<str>, Provider>,
    /// Origins that a provider's own key may go to beside the provider's host.
    trusted_origins: BTreeSet<String>,
    /// Variables that manifests may name beside any endpoint.
    nameable: BTreeSet<Box<str>>,
    /// `[default_model]` as it is written.
    default: ModelChoice,
    environment: Environment,
    /// What clients of the API set over all this.
    overrides: Arc<Overrides>,
    catalog: Arc<ModelCatalog>,
    /// The place in the catalog of the first provider with a key in the environment, which does not change while the daemon
    /// runs. Each new agent asks for it.
    in_environment: OnceLock<Option<usize>>,
}

impl Default for Providers {
    fn default() -> Self {
        Self {
            by_name: known().map(|provider| (provider.name.clone(), provider)).collect(),
            trusted_origins: BTreeSet::new(),
            nameable: BTreeSet::new(),
            default: ModelChoice::default(),
            environment: process_environment,
            overrides: Arc::default(),
            catalog: Arc::default(),
            in_environment: OnceLock::new(),
        }
    }
}

impl Providers {
    /// The known providers with `settings` over them.
    pub fn new(settings: Vec<ProviderSettings>) -> Result<Self, Error> {
        let mut providers = Self::default();
        for setting in settings {
            providers.set(setting)?;
        }
        Ok(providers)
    }

    /// The same providers, with another environment than the process's own.
    pub fn with_environment(self, environment: Environment) -> Self {
        Self { environment, in_environment: OnceLock::new(), ..self }
    }

    /// The same providers, whose models `catalog` knows.
    pub fn with_catalog(self, catalog: Arc<ModelCatalog>) -> Self {
        Self { catalog, ..self }
    }

    /// Who knows their models.
    pub const fn catalog(&self) -> &Arc<ModelCatalog> {
        &self.catalog
    }

    /// Every environment variable that may hold a key or another secret of a provider.
    pub fn key_variables(&self) -> impl Iterator<Item = Box<str>> {
        let own = self.iter().filter_map(|provider| provider.api_key_env.clone());
        let further = catalog::providers().iter().flat_map(|known| known.further_env_vars.iter());
        // A region is no secret, and log lines may name it.
        let is_secret = |name: &str| ["KEY", "TOKEN", "SECRET"].iter().any(|word| name.contains(word));
        own.chain(further.filter(move |name| is_secret(name)).cloned())
    }

    /// May the request of a call have pictures? Not when the catalog knows that its model takes none (spec 2, Model,
    /// vision_support rule).
    pub fn takes_images(&self, target: &Target) -> bool {
        let table = self.catalog.table();
        table.find(&target.provider, &target.model).is_none_or(|model| model.vision != Vision::Unsupported)
    }

    /// The same providers, whose keys may also go to the origin of `base_url`: for `[default_model] base_url`, which the
    /// world writes into the calls of agents that name no provider.
    pub fn trusting(mut self, base_url: &str) -> Self {
        self.trusted_origins.extend(origin_of(base_url));
        self
    }

    /// The same providers, with the keys and endpoints that clients of the API set.
    pub fn with_overrides(self, overrides: Arc<Overrides>) -> Self {
        overrides.look_for(self.by_name.keys().map(AsRef::as_ref));
        Self { overrides, ..self }
    }

    /// Looks again which of them have keys in the vault.
    pub fn look_for_keys(&self) {
        self.overrides.look_for(self.by_name.keys().map(AsRef::as_ref));
    }

    /// What clients set over them.
    pub const fn overrides(&self) -> &Arc<Overrides> {
        &self.overrides
    }

    /// What the key of a call for `choice` waits for: a sign-in that has to be refreshed first. `None`, almost always, when
    /// there is nothing to wait for. The future ends in bounded time, whatever becomes of it.
    pub fn getting_ready(&self, choice: &ModelChoice) -> Option<BoxFuture<'static, ()>> {
        self.overrides.getting_ready(&choice.provider)
    }

    /// Where the provider is asked: as the API set it, else as it is configured.
    pub fn base_url_of(&self, provider: &Provider) -> Box<str> {
        self.overrides.base_url(&provider.name).unwrap_or_else(|| provider.base_url.clone())
    }

    /// The providers, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.by_name.values()
    }

    /// The provider called `name`.
    pub fn get(&self, name: &str) -> Option<&Provider> {
        self.by_name.get(name)
    }

    fn set(&mut self, setting: ProviderSettings) -> Result<(), Error> {
        let name = setting.name;
        let known = self.by_name.get(name.as_str()).cloned();
        let base_url = match (&setting.base_url, &known) {
            (Some(url), _) => url.as_str().into(),
            (None, Some(known)) => known.base_url.clone(),
            (None, None) => return Err(Error::NoBaseUrl { name }),
        };
        if setting.base_url.is_some() && host_of(&base_url).is_none() {
            return Err(Error::BadBaseUrl { name });
        }
        let mut provider = known.unwrap_or_else(|| open_ai_compatible(&name, &base_url));
        provider.base_url = base_url;
        provider.driver = setting.driver.unwrap_or(provider.driver);
        if let Some(variable) = setting.api_key_env {
            provider.needs_key = !variable.is_empty();
            provider.api_key_env = (!variable.is_empty()).then(|| variable.into());
        }
        provider.needs_key = setting.needs_key.unwrap_or(provider.needs_key);
        if let Some(model) = setting.default_model {
            provider.default_model = model.into();
        }
        if let Some(tokens) = setting.context_tokens {
            (provider.context_tokens, provider.context_is_set) = (tokens, true);
        }
        self.by_name.insert(name.into(), provider);
        Ok(())
    }

    /// Settles where a call for `choice` goes, and reads the key.
    ///
    /// # Errors
    /// `UnknownProvider` when the provider or its model is not known, `ProviderAuth` when the key is missing,
    /// `ProviderRefused` when the endpoint is no URL. None is worth a retry.
    pub fn target(&self, choice: &ModelChoice) -> Result<Target, CallError> {
        self.settled(choice, |provider, base_url| self.call_key(choice, provider, base_url))
    }

    /// The same for a call that the configuration asks for, with the key in the variable that it names.
    ///
    /// # Errors
    /// As [`target`](Self::target).
    pub fn configured_target(&self, choice: &ModelChoice, variable: &str) -> Result<Target, CallError> {
        self.settled(choice, |provider, base_url| self.configured_key(provider, base_url, variable).map(Some))
    }

    fn settled(
        &self,
        choice: &ModelChoice,
        key: impl FnOnce(&Provider, &str) -> Result<Option<Secret>, CallError>,
    ) -> Result<Target, CallError> {
        let known = self.by_name.get(&choice.provider);
        let own_url = choice.base_url.as_deref().filter(|url| !url.is_empty());
        let provider = match (known, own_url) {
            (Some(known), _) => Provider { base_url: self.base_url_of(known), ..known.clone() },
            (None, Some(url)) => open_ai_compatible(&choice.provider, url),
            (None, None) => return Err(self.unknown(&choice.provider)),
        };
        let model = if choice.model.is_empty() { provider.default_model.clone() } else { choice.model.clone() };
        if model.is_empty() {
            let message = format!("No model is set for provider {}.", provider.name);
            return Err(CallError::last(FailureCode::UnknownProvider, message));
        }
        let base_url = own_url.map_or_else(|| provider.base_url.clone(), Into::into);
        if base_url.is_empty() && provider.has_no_place() {
            let name = &provider.name;
            let message = format!("Provider {name} has no base_url; set `[providers.{name}] base_url`.");
            return Err(CallError::last(FailureCode::ProviderRefused, message));
        }
        let table = self.catalog.table();
        let entry = table.find(&provider.name, &model);
        let key = key(&provider, &base_url)?;
        Ok(Target {
            bounds_completion: provider.bounds_completion && base_url == provider.base_url,
            context_tokens: catalog::context_tokens(entry, &provider),
            answer_tokens_max: entry.and_then(|model| model.max_output_tokens),
            reasons: entry.is_some_and(|model| model.reasoning),
            driver: provider.driver,
            provider: provider.name,
            model,
            base_url,
            key,
        })
    }

    fn unknown(&self, name: &str) -> CallError {
        let known: Vec<&str> = self.by_name.keys().map(AsRef::as_ref).collect();
        let message = format!("Unknown provider {name:?} without a base_url. Known providers: {}.", known.join(", "));
        CallError::last(FailureCode::UnknownProvider, message)
    }

    /// The daemon's default model: the configured one with its alias resolved and its gaps filled; else the default model of the
    /// first known provider that has one and whose key is in the environment; else the built-in offline model.
    pub fn default_model(&self, configured: &ModelChoice) -> ModelChoice {
        let mut choice = configured.clone();
        if !choice.model.is_empty()
            && let Some(name) = self.catalog.table().aliases().of(configured)
        {
            (choice.provider, choice.model) = (name.provider.clone(), name.model.clone());
        }
        if choice.provider.is_empty() {
            choice.provider = if choice.base_url.is_some() { "openai".into() } else { self.first_with_key().into() };
        }
        if choice.model.is_empty()
            && let Some(provider) = self.by_name.get(&choice.provider)
        {
            choice.model = provider.default_model.clone();
        }
        choice
    }

    fn first_with_key(&self) -> &str {
        let known = catalog::providers();
        let first = |has_key: &dyn Fn(&Provider) -> bool| {
            known.iter().position(|known| {
                let provider = self.by_name.get(&known.name).filter(|provider| !provider.default_model.is_empty());
                provider.is_some_and(has_key)
            })
        };
        let in_environment = *self.in_environment.get_or_init(|| first(&|provider| self.has_variable(provider)));
        let is_kept = |provider: &Provider| self.overrides.source(&provider.name).is_some();
        let found = [in_environment, first(&is_kept)].into_iter().flatten().min();
        found.and_then(|at| known.get(at)).map_or(BUILTIN, |known| &known.name)
    }
}

pub(crate) fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn known() -> impl Iterator<Item = Provider> {
    catalog::providers().iter().map(|known| Provider {
        name: known.name.clone(),
        driver: known.driver_kind(),
        base_url: known.base_url.clone(),
        api_key_env: known.env_var.clone(),
        needs_key: known.env_var.is_some(),
        default_model: known.default_model.clone(),
        context_tokens: known.context_tokens.unwrap_or(CONTEXT_TOKENS_DEFAULT),
        context_is_set: false,
        is_local: known.local,
        bounds_completion: known.bounds_completion,
    })
}

fn open_ai_compatible(name: &str, base_url: &str) -> Provider {
    Provider {
        name: name.into(),
        driver: DriverKind::OpenAi,
        base_url: base_url.into(),
        api_key_env: None,
        needs_key: false,
        default_model: "".into(),
        context_tokens: CONTEXT_TOKENS_DEFAULT,
        context_is_set: false,
        is_local: false,
        bounds_completion: false,
    }
}

#[cfg(test)]
#[path = "provider_tests.rs"]
mod tests;
