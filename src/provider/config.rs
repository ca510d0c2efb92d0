//! `[providers.<name>]`: where a model provider is and which environment variable holds its key; `[default_model]`: who
//! answers for agents whose manifest names no model.

use agentsvc_components::manifest::ModelChoice;

use crate::kernel::config::text::{base_url, base_url_with};
use crate::kernel::config::{Word, Words, table};
use crate::model::provider::DriverKind;
use crate::provider::oauth::DeviceFlowSettings;

impl Word for DriverKind {
    const WORDS: Words<Self> = Self::SPOKEN;
}

table! {
    /// `[providers.<name>]`. What is left out is the provider's own default.
    pub struct Provider {
        /// Base URL of the provider's API.
        base_url: Option<Box<str>> => url(provider_url).example("https://api.openai.com/v1"),
        /// API protocol: openai, openai-responses, anthropic, gemini, ollama, bedrock or azure. Default: as in the
        /// catalog, else openai.
        driver: Option<DriverKind> => choice(DriverKind::WORDS).example("openai"),
        /// Environment variable of the key; empty if the provider needs no key.
        api_key_env: Option<Box<str>> => variable().example("OPENAI_API_KEY"),
        /// Context window of its models in tokens, 512 to 100000000. Prompts are truncated to fit.
        context_tokens: Option<u32> => integer(512..=100_000_000).example("128000").writable(),
        /// Device authorization endpoint (RFC 8628) for sign-in. Preset for github-copilot.
        device_auth_url: Option<Box<str>> => url(base_url)
            .example("https://github.com/login/device/code")
            .at_restart(),
        /// Token endpoint for sign-in.
        token_url: Option<Box<str>> => url(base_url)
            .example("https://github.com/login/oauth/access_token")
            .at_restart(),
        /// Endpoint that exchanges the token for a short-lived one. Default: the token itself is used.
        exchange_url: Option<Box<str>> => url(base_url)
            .example("https://api.github.com/copilot_internal/v2/token")
            .at_restart(),
        /// OAuth client id for sign-in.
        client_id: Option<Box<str>> => text(plain).example("Iv1.b507a08c87ecfe98").at_restart(),
        /// OAuth scope for sign-in.
        scope: Option<Box<str>> => text(plain).example("read:user").at_restart(),
    }
}

impl Provider {
    /// What it says of signing in.
    pub fn device_flow(&self) -> DeviceFlowSettings {
        DeviceFlowSettings {
            device_auth_url: self.device_auth_url.clone(),
            token_url: self.token_url.clone(),
            exchange_url: self.exchange_url.clone(),
            client_id: self.client_id.clone(),
            scope: self.scope.clone(),
        }
    }
}

/// A short text of one line.
fn plain(text: &str) -> Result<Box<str>, String> {
    let text = text.trim();
    let is_plain = !text.is_empty() && text.len() <= 256 && !text.chars().any(char::is_control);
    if is_plain { Ok(text.into()) } else { Err("must be one line of 1 to 256 bytes".to_owned()) }
}

table! {
    /// `[default_model]`, as written: what is left out is the provider's own default.
    pub struct DefaultModel {
        /// Default: the first provider whose key is set, such as openai with OPENAI_API_KEY, else the built-in offline
        /// model.
        provider: Option<Box<str>> => text(name).example("openai").writable(),
        /// Model id. Default: the provider's default model.
        model: Option<Box<str>> => text(name).example("gpt-4o-mini").writable(),
        /// Environment variable of the key.
        api_key_env: Option<Box<str>> => variable().example("OPENAI_API_KEY"),
        /// Base URL, if it differs from the provider's.
        base_url: Option<Box<str>> => url(provider_url).example("https://api.openai.com/v1"),
    }
}

fn name(text: &str) -> Result<Box<str>, String> {
    let text = text.trim();
    if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(text.into()) }
}

impl DefaultModel {
    /// The same as a choice; what is not written is empty.
    pub(crate) fn choice(&self) -> ModelChoice {
        ModelChoice {
            provider: self.provider.clone().unwrap_or_default(),
            model: self.model.clone().unwrap_or_default(),
            base_url: self.base_url.clone(),
            api_key_env: self.api_key_env.clone(),
            ..ModelChoice::default()
        }
    }
}

/// What drivers read in the query of a provider's URL: Azure the version of the API, Ollama how long a model stays.
const QUERY_KEYS: &[&str] = &["api-version", "keep_alive"];

/// The URL of a provider as it will be used: a [`base_url`] whose query may say what its driver reads there.
pub(crate) fn provider_url(text: &str) -> Result<Box<str>, String> {
    base_url_with(text, QUERY_KEYS)
}
