//! `[providers.<name>]`: where a model provider is and which environment variable holds its key.

use serde::Serialize;

use super::key::{Key, Table};
use super::reader::Reader;

/// `[providers.<name>]`. What is left out is the provider's own default.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Provider {
    /// The root of its API, such as `https://api.openai.com/v1`.
    pub base_url: Option<Box<str>>,
    /// The environment variable that holds its key; empty when it needs none.
    pub api_key_env: Option<Box<str>>,
    /// Tokens of its models' context; prompts are fitted into it.
    pub context_tokens: Option<u32>,
}

impl Table for Provider {
    const KEYS: &'static [Key] = &[
        Key::url("base_url", "\"https://api.openai.com/v1\"", "The root of the provider's API.").example(),
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
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        Self {
            base_url: reader.parsed("base_url", base_url),
            api_key_env: reader.parsed("api_key_env", variable),
            context_tokens: reader.integer("context_tokens"),
        }
    }
}

/// A base URL as it will be used: without a slash at its end.
pub(crate) fn base_url(text: &str) -> Result<Box<str>, String> {
    let wrong = || "must be an http or https URL, such as \"https://api.openai.com/v1\"".to_owned();
    let url = reqwest::Url::parse(text).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong());
    }
    if url.password().is_some() || !url.username().is_empty() || url.query().is_some() {
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

    use super::{base_url, variable};
    use crate::config::parse;

    #[test]
    fn providers_are_kept_by_name() {
        let text = "[providers.local]\nbase_url = \"http://127.0.0.1:8080/v1/\"\n[providers.\"x y\"]\nbase_url = \"http://h\"\n";
        let providers = parse(text, Path::new("c")).unwrap().config.providers;
        assert_eq!(providers["local"].base_url.as_deref(), Some("http://127.0.0.1:8080/v1"));
        assert_eq!(providers["x y"].base_url.as_deref(), Some("http://h"));
    }

    #[test]
    fn urls_and_variables_are_checked() {
        for url in ["", "localhost:80", "ftp://x", "http://", "https://u:p@h/", "https://h/?key=1"] {
            assert!(base_url(url).is_err(), "{url}");
        }
        assert!(variable("OPENAI_API_KEY").is_ok() && variable("").is_ok());
        assert!(["1A", "sk-123", "A B"].into_iter().all(|name| variable(name).is_err()));
    }
}
