//! `[web]`: what the web tools may reach, and who searches.

use serde::Serialize;

use super::key::{Key, Table};
use super::providers::{base_url, variable};
use super::reader::Reader;
use crate::kernel::egress::{AllowedHosts, MAX_BYTES_DEFAULT, MAX_CHARS_DEFAULT, TIMEOUT_SECS_DEFAULT, WebSettings};
use crate::web::search;
use crate::web::search::SearchSettings;

/// `[web]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Web {
    /// `[web.fetch]`.
    pub fetch: WebFetch,
    /// `[web.search]`.
    pub search: WebSearch,
}

impl Table for Web {
    const KEYS: &'static [Key] = &[
        Key::table::<WebFetch>("fetch", "What the web tools of agents may reach; private addresses are refused."),
        Key::table::<WebSearch>("search", "Who answers the tool web_search."),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        Self { fetch: reader.table("fetch"), search: reader.table("search") }
    }
}

impl Web {
    /// The settings in effect.
    #[must_use]
    pub fn settings(&self) -> WebSettings {
        WebSettings {
            // What was read has been parsed once; what could not be would open nothing.
            allowed: AllowedHosts::parse(&self.fetch.ssrf_allowed_hosts).unwrap_or_default(),
            max_bytes: usize::try_from(self.fetch.max_bytes).unwrap_or(usize::MAX),
            timeout: std::time::Duration::from_secs(self.fetch.timeout_secs),
            max_chars: usize::try_from(self.fetch.max_chars).unwrap_or(usize::MAX),
            search: SearchSettings {
                provider: self.search.provider.clone(),
                base_url: self.search.base_url.clone(),
                api_key_env: self.search.api_key_env.clone(),
                max_results: usize::try_from(self.search.max_results).unwrap_or(usize::MAX),
            },
        }
    }
}

/// `[web.fetch]`: the fetcher of all web tools.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WebFetch {
    /// Private hosts that fetches may reach.
    pub ssrf_allowed_hosts: Vec<Box<str>>,
    /// Bytes of a body, unpacked; the rest is not read.
    pub max_bytes: u64,
    /// Seconds for a whole fetch.
    pub timeout_secs: u64,
    /// Characters that one call of `web_fetch` gives at most.
    pub max_chars: u64,
}

impl Default for WebFetch {
    fn default() -> Self {
        Self {
            ssrf_allowed_hosts: Vec::new(),
            max_bytes: MAX_BYTES_DEFAULT,
            timeout_secs: TIMEOUT_SECS_DEFAULT,
            max_chars: MAX_CHARS_DEFAULT,
        }
    }
}

impl Table for WebFetch {
    const KEYS: &'static [Key] = &[
        Key::list(
            "ssrf_allowed_hosts",
            "[]",
            "Private hosts that may be reached all the same: names, addresses or blocks, with or without a port, such \
             as \"wiki.corp\", \"*.corp:8080\", \"10.0.0.0/8\".",
        )
        .protected(),
        Key::integer(
            "max_bytes",
            1_024..=64 << 20,
            "5242880",
            "Bytes of a body, unpacked, 1024 to 67108864; the rest is not read.",
        )
        .writable(),
        Key::integer("timeout_secs", 1..=110, "30", "Seconds for a whole fetch, redirects included, 1 to 110.")
            .writable(),
        Key::integer(
            "max_chars",
            100..=250_000,
            "20000",
            "Characters of a page that one call of web_fetch gives, 100 to 250000.",
        )
        .writable(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let default = Self::default();
        let host = |text: &str| AllowedHosts::parse(&[text]).map(|_| Box::from(text.trim()));
        Self {
            ssrf_allowed_hosts: reader.list("ssrf_allowed_hosts", host).unwrap_or_default(),
            max_bytes: reader.integer("max_bytes").unwrap_or(default.max_bytes),
            timeout_secs: reader.integer("timeout_secs").unwrap_or(default.timeout_secs),
            max_chars: reader.integer("max_chars").unwrap_or(default.max_chars),
        }
    }
}

/// The names of those who search.
fn providers() -> Vec<&'static str> {
    search::provider_names().collect()
}

/// `[web.search]`: who answers `web_search`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WebSearch {
    /// The provider's name; `None` is DuckDuckGo's page for people.
    pub provider: Option<Box<str>>,
    /// Another endpoint than the provider's own. Trusted: it may be private.
    pub base_url: Option<Box<str>>,
    /// The environment variable that holds the key, when not the provider's own.
    pub api_key_env: Option<Box<str>>,
    /// Results of one search at most.
    pub max_results: u64,
}

impl Default for WebSearch {
    fn default() -> Self {
        Self { provider: None, base_url: None, api_key_env: None, max_results: search::RESULTS_DEFAULT }
    }
}

impl Table for WebSearch {
    const KEYS: &'static [Key] = &[
        Key::one_of(
            "provider",
            providers,
            "\"duckduckgo\"",
            "searxng, brave, tavily or duckduckgo, the only one that needs neither a key nor a server; it may refuse.",
        )
        .writable(),
        Key::url(
            "base_url",
            "\"https://html.duckduckgo.com\"",
            "Another endpoint than the provider's own; needed for searxng. May be a private host.",
        )
        .example(),
        Key::variable(
            "api_key_env",
            "\"BRAVE_API_KEY\"",
            "The environment variable of the key. Default: BRAVE_API_KEY or TAVILY_API_KEY.",
        )
        .example(),
        Key::integer("max_results", 1..=search::RESULTS_MAX, "8", "Results of one search at most, 1 to 20.").writable(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let default = Self::default();
        let read = Self {
            provider: reader.word("provider").map(Box::from),
            base_url: reader.parsed("base_url", base_url),
            api_key_env: reader.parsed("api_key_env", variable).filter(|name| !name.is_empty()),
            max_results: reader.integer("max_results").unwrap_or(default.max_results),
        };
        if read.provider.as_deref().is_some_and(search::needs_base_url) && read.base_url.is_none() {
            reader.problem("provider", "needs `base_url` beside it: where your server is".to_owned());
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::parse;

    fn errors(text: &str) -> String {
        parse(text, Path::new("c")).unwrap_err().to_string()
    }

    #[test]
    fn settings_follow_the_file() {
        let text = "[web.fetch]\nssrf_allowed_hosts = [\"127.0.0.1:81\", \"*.corp\"]\nmax_bytes = 2048\n\
                    [web.search]\nprovider = \"searxng\"\nbase_url = \"http://s.lan/\"\nmax_results = 3\n";
        let settings = parse(text, Path::new("c")).unwrap().config.web.settings();
        assert_eq!((settings.max_bytes, settings.search.max_results), (2_048, 3));
        assert_eq!(settings.search.base_url.as_deref(), Some("http://s.lan"));
        let default = parse("", Path::new("c")).unwrap().config.web.settings();
        assert_eq!(default, crate::kernel::egress::WebSettings::default());
    }

    #[test]
    fn wrong_values_are_named() {
        let error = errors("[web.fetch]\nssrf_allowed_hosts = [\"http://x\"]\ntimeout_secs = 0\n");
        assert!(error.contains("c:2:23: web.fetch.ssrf_allowed_hosts: must be host names"), "{error}");
        assert!(error.contains("web.fetch.timeout_secs: must be 1 to 110"), "{error}");
        let error = errors("[web.search]\nprovider = \"brve\"\n");
        assert!(error.contains("did you mean `brave`?"), "{error}");
        let error = errors("[web.search]\nprovider = \"searxng\"\n");
        assert!(error.contains("c:2:12: web.search.provider: needs `base_url`"), "{error}");
    }
}
