//! `[web]`: what the web tools may reach, and who searches.

use crate::kernel::config::text::base_url;
use crate::kernel::config::{Reader, table};
use crate::kernel::egress::{AllowedHosts, MAX_BYTES_DEFAULT, MAX_CHARS_DEFAULT, TIMEOUT_SECS_DEFAULT, WebSettings};
use crate::web::search::{self, SearchSettings};

table! {
    /// `[web]`.
    pub struct Web {
        /// Fetching by web tools. Private addresses are refused.
        fetch: WebFetch => table(),
        /// Provider of the tool web_search.
        search: WebSearch => table(),
    }
}

impl Web {
    /// The settings in effect.
    pub fn settings(&self) -> WebSettings {
        WebSettings {
            // What was read has been parsed once; what could not be would open nothing.
            allowed: AllowedHosts::parse(&self.fetch.ssrf_allowed_hosts).unwrap_or_default(),
            max_bytes: usize::try_from(self.fetch.max_bytes).unwrap_or(usize::MAX),
            timeout: std::time::Duration::from_secs(self.fetch.timeout_secs),
            max_chars: usize::try_from(self.fetch.max_chars).unwrap_or(usize::MAX),
        }
    }

    /// What searches take of it.
    pub fn search_settings(&self) -> SearchSettings {
        SearchSettings {
            provider: self.search.provider.clone(),
            base_url: self.search.base_url.clone(),
            api_key_env: self.search.api_key_env.clone().filter(|name| !name.is_empty()),
            max_results: usize::try_from(self.search.max_results).unwrap_or(usize::MAX),
        }
    }
}

table! {
    /// `[web.fetch]`: the fetcher of all web tools.
    pub struct WebFetch {
        /// Private hosts that web tools can reach: names, addresses or blocks, with an optional port, such as
        /// "wiki.corp", "*.corp:8080", "10.0.0.0/8".
        ssrf_allowed_hosts: Vec<Box<str>> => list(host).protected(),
        /// Maximum bytes of a decompressed body, 1024 to 67108864; the rest is not read.
        max_bytes: u64 = MAX_BYTES_DEFAULT => integer(1_024..=64 << 20).writable(),
        /// Timeout of a fetch in seconds, including redirects, 1 to 110.
        timeout_secs: u64 = TIMEOUT_SECS_DEFAULT => integer(1..=110).writable(),
        /// Characters of a page returned by one call of web_fetch, 100 to 250000.
        max_chars: u64 = MAX_CHARS_DEFAULT => integer(100..=250_000).writable(),
    }
}

fn host(text: &str) -> Result<Box<str>, String> {
    AllowedHosts::parse(&[text]).map(|_| text.trim().into())
}

/// The names of those who search.
fn providers() -> Vec<&'static str> {
    search::provider_names().collect()
}

table! {
    /// `[web.search]`: who answers `web_search`. Its endpoint is trusted: it may be private.
    #[check(Self::note_endpoint)]
    pub struct WebSearch {
        /// searxng, brave, tavily or duckduckgo. Only duckduckgo needs no key or server, but it may refuse searches.
        provider: Option<Box<str>> => one_of(providers).meaning(search::DEFAULT_NAME).writable(),
        /// Base URL of the search provider; required for searxng. Private hosts are allowed.
        base_url: Option<Box<str>> => url(base_url).example("https://html.duckduckgo.com"),
        /// Environment variable of the key. Default: BRAVE_API_KEY or TAVILY_API_KEY.
        api_key_env: Option<Box<str>> => variable().example("BRAVE_API_KEY"),
        /// Maximum results of a search, 1 to 20.
        max_results: u64 = search::RESULTS_DEFAULT => integer(1..=search::RESULTS_MAX).writable(),
    }
}

impl WebSearch {
    fn note_endpoint(&self, reader: &mut Reader<'_, '_>) {
        if self.provider.as_deref().is_some_and(search::needs_base_url) && self.base_url.is_none() {
            reader.problem("provider", "needs `base_url`, the address of your server".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SearchSettings, Web};
    use crate::kernel::config::{Error, Loaded, read_table};

    fn parse(text: &str) -> Result<Loaded<Web>, Error> {
        read_table("web", text)
    }

    fn errors(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn settings_follow_the_file() {
        let text = "[web.fetch]\nssrf_allowed_hosts = [\"127.0.0.1:81\", \"*.corp\"]\nmax_bytes = 2048\n\
                    [web.search]\nprovider = \"searxng\"\nbase_url = \"http://s.lan/\"\nmax_results = 3\n";
        let web = parse(text).unwrap().config;
        let search = web.search_settings();
        assert_eq!((web.settings().max_bytes, search.max_results), (2_048, 3));
        assert_eq!(search.base_url.as_deref(), Some("http://s.lan"));
        let default = parse("").unwrap().config;
        assert_eq!(default.settings(), crate::kernel::egress::WebSettings::default());
        assert_eq!(default.search_settings(), SearchSettings::default());
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
