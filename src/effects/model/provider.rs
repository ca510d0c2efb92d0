//! Providers: where models are asked, with which key, and which model is the daemon's default.
//!
//! The table of known providers is built in; the configuration adds to it and overrides it. Any other name is
//! good too when the agent's manifest gives a `base_url`: it is then taken for an OpenAI-compatible endpoint.
//!
//! Keys come, in this order, from the variable that the manifest names (`api_key_env`), from the vault ([`overrides`]), and
//! from the provider's own variable; variables are read when a call is made. A provider's own key goes to the
//! provider's own host, to this machine, to hosts that the configuration trusts, or where the manifest names the key
//! (`api_key_env`) beside the `base_url`; a manifest's `base_url` alone never carries a key to another host.

mod headers;
mod keys;
pub mod overrides;
mod secret;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agentsvc_components::manifest::ModelChoice;
use agentsvc_components::outcome::FailureCode;
use futures_util::future::BoxFuture;

use super::error::CallError;
use overrides::Overrides;
pub(crate) use headers::extra_headers;
pub use secret::Secret;

/// The provider that needs neither key nor network.
pub const BUILTIN: &str = "builtin";
/// The model of [`BUILTIN`].
pub const BUILTIN_MODEL: &str = "builtin";
/// Tokens of a model's context, question and answer together, where nothing better is known.
pub const CONTEXT_TOKENS_DEFAULT: u32 = 128_000;

/// Which driver speaks with a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverKind {
    /// The built-in offline model.
    #[default]
    Builtin,
    /// OpenAI-compatible chat completions.
    OpenAi,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's generateContent.
    Gemini,
    /// Ollama's own chat.
    Ollama,
    /// The Converse API of AWS Bedrock.
    Bedrock,
    /// OpenAI's chat completions on Azure.
    Azure,
}

impl DriverKind {
    /// Every driver.
    pub const ALL: [Self; 8] = [
        Self::Builtin,
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Ollama,
        Self::Bedrock,
        Self::Azure,
    ];

    /// Its word in the catalog and the configuration, and on what came over its wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Bedrock => "bedrock",
            Self::Azure => "azure",
        }
    }

    /// The driver of a word; `None` for any other.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

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
    /// A call without a key is pointless.
    pub needs_key: bool,
    /// The model to ask when only the provider is named; empty when there is no good one.
    pub default_model: Box<str>,
    /// Tokens of its models' context, question and answer together.
    pub context_tokens: u32,
    /// It wants the answer's bound as `max_completion_tokens`, not `max_tokens`.
    pub bounds_completion: bool,
}

/// A provider in the configuration. What is `None` stays as built in, or takes the plain default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderSettings {
    /// The name, known or new.
    pub name: String,
    /// The endpoint; must be given for a new name.
    pub base_url: Option<String>,
    /// The environment variable with the key; an empty text means that there is none.
    pub api_key_env: Option<String>,
    /// A call without a key is pointless; by default true when `api_key_env` is given here.
    pub needs_key: Option<bool>,
    /// The model to ask when only the provider is named.
    pub default_model: Option<String>,
    /// Tokens of its models' context.
    pub context_tokens: Option<u32>,
}

/// Name, endpoint, key variable, default model, context tokens of the known OpenAI-compatible providers.
///
/// The order is the order in which a key in the environment decides the default model.
const KNOWN: &[(&str, &str, &str, &str, u32)] = &[
    ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-4o-mini", 128_000),
    ("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openai/gpt-4o-mini", 128_000),
    ("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "llama-3.1-8b-instant", 128_000),
    ("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-chat", 64_000),
    ("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral-small-latest", 32_000),
    ("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", "meta-llama/Llama-3.3-70B-Instruct-Turbo", 128_000),
    (
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_API_KEY",
        "accounts/fireworks/models/llama-v3p3-70b-instruct",
        128_000,
    ),
    ("xai", "https://api.x.ai/v1", "XAI_API_KEY", "grok-3-mini", 128_000),
    ("ollama", "http://127.0.0.1:11434/v1", "", "", 8_192),
    ("lmstudio", "http://127.0.0.1:1234/v1", "", "", 32_768),
    ("vllm", "http://127.0.0.1:8000/v1", "", "", 32_768),
];

/// A provider setting that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A new provider without an endpoint.
    #[error("provider {name} is not a known one and has no base_url")]
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
    /// Hosts that a provider's own key may go to beside the provider's.
    trusted_hosts: BTreeSet<String>,
    environment: Environment,
    /// What clients of the API set over all this.
    overrides: Arc<Overrides>,
}

impl Default for Providers {
    fn default() -> Self {
        Self {
            by_name: known().map(|provider| (provider.name.clone(), provider)).collect(),
            trusted_hosts: BTreeSet::new(),
            environment: process_environment,
            overrides: Arc::default(),
        }
    }
}

impl Providers {
    /// The known providers with `settings` over them.
    ///
    /// # Errors
    /// [`Error`], naming the first setting at fault.
    pub fn new(settings: Vec<ProviderSettings>) -> Result<Self, Error> {
        let mut providers = Self::default();
        for setting in settings {
            providers.set(setting)?;
        }
        Ok(providers)
    }

    /// The same providers, with another environment than the process's own.
    #[must_use]
    pub fn with_environment(self, environment: Environment) -> Self {
        Self { environment, ..self }
    }

    /// The same providers, whose keys may also go to the host of `base_url`: for `[default_model] base_url`, which the
    /// world writes into the calls of agents that name no provider.
    #[must_use]
    pub fn trusting(mut self, base_url: &str) -> Self {
        self.trusted_hosts.extend(host_of(base_url));
        self
    }

    /// The same providers, with the keys and endpoints that clients of the API set.
    #[must_use]
    pub fn with_overrides(self, overrides: Arc<Overrides>) -> Self {
        overrides.look_for(self.by_name.keys().map(AsRef::as_ref));
        Self { overrides, ..self }
    }

    /// What the key of a call for `choice` waits for: a sign-in that has to be refreshed first. `None`, almost always, when
    /// there is nothing to wait for. The future ends in bounded time, whatever becomes of it.
    #[must_use]
    pub fn getting_ready(&self, choice: &ModelChoice) -> Option<BoxFuture<'static, ()>> {
        self.overrides.getting_ready(&choice.provider)
    }

    /// Where the provider is asked: as the API set it, else as it is configured.
    #[must_use]
    pub fn base_url_of(&self, provider: &Provider) -> Box<str> {
        self.overrides.base_url(&provider.name).unwrap_or_else(|| provider.base_url.clone())
    }

    /// The providers, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.by_name.values()
    }

    /// The provider called `name`.
    #[must_use]
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
        if let Some(variable) = setting.api_key_env {
            provider.needs_key = !variable.is_empty();
            provider.api_key_env = (!variable.is_empty()).then(|| variable.into());
        }
        provider.needs_key = setting.needs_key.unwrap_or(provider.needs_key);
        if let Some(model) = setting.default_model {
            provider.default_model = model.into();
        }
        provider.context_tokens = setting.context_tokens.unwrap_or(provider.context_tokens);
        self.by_name.insert(name.into(), provider);
        Ok(())
    }

    /// Settles where a call for `choice` goes, and reads the key.
    ///
    /// # Errors
    /// `UnknownProvider` when the provider or its model is not known, `ProviderAuth` when the key is missing,
    /// `ProviderRefused` when the endpoint is no URL. None is worth a retry.
    pub fn target(&self, choice: &ModelChoice) -> Result<Target, CallError> {
        let known = self.by_name.get(&choice.provider);
        let own_url = choice.base_url.as_deref().filter(|url| !url.is_empty());
        let provider = match (known, own_url) {
            (Some(known), _) => Provider { base_url: self.base_url_of(known), ..known.clone() },
            (None, Some(url)) => open_ai_compatible(&choice.provider, url),
            (None, None) => return Err(self.unknown(&choice.provider)),
        };
        let model = if choice.model.is_empty() { provider.default_model.clone() } else { choice.model.clone() };
        if model.is_empty() {
            let message = format!("No model is named for provider {}.", provider.name);
            return Err(CallError::last(FailureCode::UnknownProvider, message));
        }
        let base_url = own_url.map_or_else(|| provider.base_url.clone(), Into::into);
        let key = self.call_key(choice, &provider, &base_url)?;
        Ok(Target {
            bounds_completion: provider.bounds_completion && base_url == provider.base_url,
            context_tokens: provider.context_tokens,
            answer_tokens_max: None,
            reasons: false,
            driver: provider.driver,
            provider: provider.name,
            model,
            base_url,
            key,
        })
    }

    fn unknown(&self, name: &str) -> CallError {
        let known: Vec<&str> = self.by_name.keys().map(AsRef::as_ref).collect();
        let message = format!("Provider {name:?} is not known and has no base_url. Known are: {}.", known.join(", "));
        CallError::last(FailureCode::UnknownProvider, message)
    }

    /// The daemon's default model: the configured one with its gaps filled; else the default model of the first
    /// known provider whose key is in the environment; else the built-in offline model.
    #[must_use]
    pub fn default_model(&self, configured: &ModelChoice) -> ModelChoice {
        let mut choice = configured.clone();
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
        let with_key = |name: &&str| {
            let provider = self.by_name.get(*name);
            provider.is_some_and(|provider| self.key_source(provider).is_some())
        };
        KNOWN.iter().map(|(name, ..)| *name).find(with_key).unwrap_or(BUILTIN)
    }
}

fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn known() -> impl Iterator<Item = Provider> {
    let builtin = Provider {
        name: BUILTIN.into(),
        driver: DriverKind::Builtin,
        base_url: "".into(),
        api_key_env: None,
        needs_key: false,
        default_model: BUILTIN_MODEL.into(),
        context_tokens: CONTEXT_TOKENS_DEFAULT,
        bounds_completion: false,
    };
    let others = KNOWN.iter().map(|&(name, base_url, variable, model, context_tokens)| Provider {
        api_key_env: (!variable.is_empty()).then(|| variable.into()),
        needs_key: !variable.is_empty(),
        default_model: model.into(),
        context_tokens,
        // Its newer models refuse `max_tokens`; most others know nothing else.
        bounds_completion: name == "openai",
        ..open_ai_compatible(name, base_url)
    });
    std::iter::once(builtin).chain(others)
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
        bounds_completion: false,
    }
}

/// The lower-case host of an HTTP URL; `None` for anything else.
pub(crate) fn host_of(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.host_str().map(str::to_ascii_lowercase))?
}

/// True for a host that is this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
#[path = "provider_tests.rs"]
mod tests;
