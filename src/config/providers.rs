//! `[providers.<name>]`: where a model provider is and which environment variable holds its key.

use serde::Serialize;

use super::key::{Key, Table, Word};
use super::reader::Reader;
use crate::model::provider::DriverKind;
use crate::provider::oauth::DeviceFlowSettings;

impl Word for DriverKind {
    const WORDS: &'static [(&'static str, Self)] = Self::SPOKEN;
}

/// `[providers.<name>]`. What is left out is the provider's own default.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Provider {
    /// The root of its API, such as `https://api.openai.com/v1`.
    pub base_url: Option<Box<str>>,
    /// Which driver speaks with it: the catalog's, else that of OpenAI's chat completions.
    pub driver: Option<DriverKind>,
    /// The environment variable that holds its key; empty when it needs none.
    pub api_key_env: Option<Box<str>>,
    /// Tokens of its models' context; prompts are fitted into it.
    pub context_tokens: Option<u32>,
    /// Where signing in begins.
    pub device_auth_url: Option<Box<str>>,
    /// Where the token of a sign-in is got.
    pub token_url: Option<Box<str>>,
    /// Where the token is exchanged for what calls go with.
    pub exchange_url: Option<Box<str>>,
    /// The public name of the client that signs in.
    pub client_id: Option<Box<str>>,
    /// What a sign-in asks for.
    pub scope: Option<Box<str>>,
}

impl Provider {
    /// Takes over from `started` what only a start can change: how one signs in.
    pub(crate) fn sign_in_of(&mut self, started: Option<&Self>) {
        let started = started.cloned().unwrap_or_default();
        self.device_auth_url = started.device_auth_url;
        self.token_url = started.token_url;
        self.exchange_url = started.exchange_url;
        self.client_id = started.client_id;
        self.scope = started.scope;
    }
}

impl Table for Provider {
    const KEYS: &'static [Key] = &[
        Key::url("base_url", "\"https://api.openai.com/v1\"", "The root of the provider's API.").example(),
        Key::choice::<DriverKind>(
            "driver",
            "\"openai\"",
            "What it speaks: openai, openai-responses, anthropic, gemini, ollama, bedrock or azure. Default: as the catalog says, \
             else openai.",
        )
        .example(),
        Key::variable(
            "api_key_env",
            "\"OPENAI_API_KEY\"",
            "The environment variable that holds the key; empty: it needs none.",
        )
        .example(),
        Key::integer(
            "context_tokens",
            512..=100_000_000,
            "128000",
            "Tokens of its models' context, 512 to 100000000; prompts are fitted into it.",
        )
        .example()
        .writable(),
        Key::url(
            "device_auth_url",
            "\"https://github.com/login/device/code\"",
            "Where signing in by a device flow (RFC 8628) begins. Known of github-copilot.",
        )
        .example()
        .at_restart(),
        Key::url("token_url", "\"https://github.com/login/oauth/access_token\"", "Where the sign-in's token is got.")
            .example()
            .at_restart(),
        Key::url(
            "exchange_url",
            "\"https://api.github.com/copilot_internal/v2/token\"",
            "Where the token is exchanged for a short one that goes with calls. Default: the token itself goes.",
        )
        .example()
        .at_restart(),
        Key::text("client_id", "\"Iv1.b507a08c87ecfe98\"", "The public name of the client that signs in.")
            .example()
            .at_restart(),
        Key::text("scope", "\"read:user\"", "What the sign-in asks for.").example().at_restart(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        Self {
            base_url: reader.parsed("base_url", provider_url),
            driver: reader.choice("driver"),
            api_key_env: reader.parsed("api_key_env", variable),
            context_tokens: reader.integer("context_tokens"),
            device_auth_url: reader.parsed("device_auth_url", base_url),
            token_url: reader.parsed("token_url", base_url),
            exchange_url: reader.parsed("exchange_url", base_url),
            client_id: reader.parsed("client_id", plain),
            scope: reader.parsed("scope", plain),
        }
    }
}

impl Provider {
    /// What it says of signing in.
    #[must_use]
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
    if is_plain { Ok(text.into()) } else { Err("must be a text of one line, 1 to 256 bytes".to_owned()) }
}

/// What drivers read in the query of a provider's URL: Azure the version of the API, Ollama how long a model stays.
const QUERY_KEYS: &[&str] = &["api-version", "keep_alive"];

/// The URL of a provider as it will be used: a [`base_url`] whose query may say what its driver reads there.
pub(crate) fn provider_url(text: &str) -> Result<Box<str>, String> {
    url_with(text, QUERY_KEYS)
}

/// A base URL as it will be used: without a slash at its end.
pub(crate) fn base_url(text: &str) -> Result<Box<str>, String> {
    url_with(text, &[])
}

/// A base URL whose query has no other keys than these; without keys it has none.
fn url_with(text: &str, query_keys: &[&str]) -> Result<Box<str>, String> {
    let wrong = || "must be an http or https URL, such as \"https://api.openai.com/v1\"".to_owned();
    let url = reqwest::Url::parse(text).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong());
    }
    let is_known = |query_key: &str| query_keys.contains(&query_key);
    let has_other = query_keys.is_empty() || url.query_pairs().any(|(query_key, _)| !is_known(&query_key));
    if url.password().is_some() || !url.username().is_empty() || (url.query().is_some() && has_other) {
        return Err("must be without a user, a password or a query; keys belong in `api_key_env`".to_owned());
    }
    Ok(text.trim_end_matches('/').into())
}

/// The name of an environment variable, or nothing. The message keeps the value out: it is often a pasted key.
pub(crate) fn variable(text: &str) -> Result<Box<str>, String> {
    let named = !text.starts_with(|first: char| first.is_ascii_digit());
    if named && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        Ok(text.into())
    } else {
        Err("must be the name of an environment variable, not the key itself".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{DriverKind, base_url, provider_url, variable};
    use crate::config::parse;

    #[test]
    fn providers_are_kept_by_name() {
        let text = "[providers.local]\nbase_url = \"http://127.0.0.1:8080/v1/\"\n[providers.\"x y\"]\nbase_url = \"http://h\"\n";
        let providers = parse(text, Path::new("c")).unwrap().config.providers;
        assert_eq!(providers["local"].base_url.as_deref(), Some("http://127.0.0.1:8080/v1"));
        assert_eq!(providers["x y"].base_url.as_deref(), Some("http://h"));
    }

    #[test]
    fn a_driver_is_one_of_those_that_speak_with_somebody() {
        let of = |word: &str| {
            let text = format!("[providers.mine]\nbase_url = \"http://h\"\ndriver = \"{word}\"\n");
            let loaded = parse(&text, Path::new("c")).map_err(|error| error.to_string())?;
            let (providers, _) = loaded.config.models().map_err(|error| error.to_string())?;
            Ok::<_, String>(providers.get("mine").map(|provider| provider.driver))
        };
        for (word, kind) in DriverKind::SPOKEN {
            assert_eq!((of(word).unwrap(), DriverKind::parse(word)), (Some(*kind), Some(*kind)));
        }
        assert_eq!(DriverKind::SPOKEN.len() + 1, DriverKind::ALL.len(), "all but the built-in model");
        for word in ["builtin", "claude", ""] {
            let problem = of(word).unwrap_err();
            assert!(problem.contains("providers.mine.driver: must be one of `openai`"), "{problem}");
        }
        let text = "[providers.openai]\ndriver = \"openai-responses\"\n[providers.plain]\nbase_url = \"http://h\"\n";
        let (providers, _) = parse(text, Path::new("c")).unwrap().config.models().unwrap();
        let driver = |name: &str| providers.get(name).map(|provider| provider.driver);
        assert_eq!(driver("openai"), Some(DriverKind::OpenAiResponses), "that of a known one can be another");
        assert_eq!((driver("plain"), driver("groq")), (Some(DriverKind::OpenAi), Some(DriverKind::OpenAi)));
    }

    #[test]
    fn urls_and_variables_are_checked() {
        for url in ["", "localhost:80", "ftp://x", "http://", "https://u:p@h/", "https://h/?key=1"] {
            assert!(base_url(url).is_err(), "{url}");
        }
        for url in ["https://h?api-version=2025-04-01-preview", "http://127.0.0.1:11434/?keep_alive=30m"] {
            assert_eq!(provider_url(url).as_deref(), Ok(url), "what a driver reads is no secret");
            assert!(base_url(url).is_err(), "{url}");
        }
        for url in ["https://h/?key=1", "https://h/?api-version=1&key=1", "https://u:p@h/?api-version=1", "ftp://h"] {
            assert!(provider_url(url).is_err(), "{url}");
        }
        assert!(variable("OPENAI_API_KEY").is_ok() && variable("").is_ok());
        assert!(["1A", "sk-123", "A B"].into_iter().all(|name| variable(name).is_err()));
    }
}
