//! Searching the web. A provider is one file and one line in [`PROVIDERS`]: how its request looks and how its answer
//! is read. Its host goes through the same fetcher as everything else, and so must be granted by the manifest; as a
//! URL of the configuration it may be private.

mod brave;
mod duckduckgo;
mod searxng;
mod tavily;

use agentsvc_components::kernel::holder::Holder;
use reqwest::StatusCode;
use reqwest::header::HeaderName;

use super::html;
use crate::kernel::egress::fetch::{Fetched, Request};
use crate::kernel::egress::{Error, Web};
use crate::kernel::percent::encoded;

/// Results that one search gives at most, whoever searches.
pub const RESULTS_MAX: u64 = 20;
/// Results of one search, unless `[web.search] max_results` says otherwise.
pub const RESULTS_DEFAULT: u64 = 8;
/// Bytes of a title or snippet; the rest is cut.
const PART_BYTES_MAX: usize = 1_000;

/// All providers.
const PROVIDERS: &[&Provider] = &[&searxng::PROVIDER, &brave::PROVIDER, &tavily::PROVIDER, &duckduckgo::PROVIDER];

/// The provider when none is configured: the only one that needs neither a key nor a server of one's own.
const DEFAULT: &Provider = &duckduckgo::PROVIDER;

/// `[web.search]`, as it is in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchSettings {
    /// The provider's name; `None` is the default one.
    pub provider: Option<Box<str>>,
    /// Base URL, if it differs from the provider's.
    pub base_url: Option<Box<str>>,
    /// Another environment variable for the key than the provider's own.
    pub api_key_env: Option<Box<str>>,
    /// Results of one search at most.
    pub max_results: usize,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self { provider: None, base_url: None, api_key_env: None, max_results: RESULTS_DEFAULT as usize }
    }
}

/// The provider that searches when none is named.
pub const DEFAULT_NAME: &str = DEFAULT.name;

/// The names of all providers.
pub fn provider_names() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().map(|provider| provider.name)
}

/// True when the provider has no endpoint of its own, so that `base_url` must be set.
pub fn needs_base_url(provider: &str) -> bool {
    find(provider).is_some_and(|provider| provider.base_url.is_empty())
}

fn find(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().copied().find(|provider| provider.name == name)
}

/// One provider of searches.
struct Provider {
    name: &'static str,
    /// Its endpoint; empty when the operator must name one.
    base_url: &'static str,
    /// The environment variable of its key; empty when it takes none.
    key_env: &'static str,
    /// What it answers with.
    accept: &'static str,
    /// The request for a query.
    ask: fn(&Query<'_>) -> Asked,
    /// Reads an answer of status 200. The error is a sentence without its end.
    read: fn(&str) -> Result<Vec<Hit>, String>,
}

/// What is searched.
struct Query<'a> {
    /// The endpoint, without a slash at its end.
    base_url: &'a str,
    text: &'a str,
    /// Maximum number of results.
    count: usize,
    /// The key; empty when there is none.
    key: &'a str,
}

/// A provider's request.
struct Asked {
    url: String,
    /// The header with the key.
    header: Option<(HeaderName, String)>,
    /// JSON to post; `None` for a GET.
    json: Option<String>,
}

/// One result of a search, in plain text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hit {
    /// The title of the page.
    pub(crate) title: String,
    /// Its address.
    pub(crate) url: String,
    /// What it says; may be empty.
    pub(crate) snippet: String,
}

impl Hit {
    /// From parts that may hold markup. `None` without an address that can be fetched.
    fn new(title: &str, url: &str, snippet: &str) -> Option<Self> {
        let url = url.trim();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return None;
        }
        let part = |text: &str| {
            let line = html::line(text);
            let end = line.floor_char_boundary(PART_BYTES_MAX);
            if end < line.len() { format!("{}...", &line[..end]) } else { line }
        };
        let title = part(title);
        let title = if title.is_empty() { url.to_owned() } else { title };
        Some(Self { title, url: url.to_owned(), snippet: part(snippet) })
    }
}

impl SearchSettings {
    /// Searches over `web`, with the provider of these settings. At most `count` results, best first.
    ///
    /// # Errors
    /// A sentence for the model, with what the operator can do about it.
    pub(crate) async fn search(
        &self,
        web: &Web,
        text: &str,
        count: usize,
        (holder, network): (Holder, &[Box<str>]),
    ) -> Result<Vec<Hit>, String> {
        let settings = self;
        let provider = match settings.provider.as_deref() {
            Some(name) => find(name).ok_or_else(|| format!("Unknown search provider {name:?}."))?,
            None => DEFAULT,
        };
        let base_url = settings.base_url.as_deref().unwrap_or(provider.base_url).trim_end_matches('/');
        let key = settings.key(provider, web)?;
        let asked = (provider.ask)(&Query { base_url, text, count, key: &key });
        let request = Request {
            url: &asked.url,
            holder,
            network,
            trusted: settings.base_url.as_deref(),
            accept: provider.accept,
            header: asked.header.as_ref().map(|(name, value)| (name.clone(), value.as_str())),
            json: asked.json.clone(),
            redirects_max: 0,
        };
        let failed = |why: String| failure(provider, settings, &why);
        let fetched = web.fetch(request).await.map_err(|error| match error {
            Error::NotGranted(_) => format!("{error} Searches use that host."),
            error => failed(error.to_string()),
        })?;
        let mut hits = read(provider, &fetched).map_err(failed)?;
        hits.truncate(count);
        Ok(hits)
    }

    fn key(&self, provider: &Provider, web: &Web) -> Result<String, String> {
        let name = self.api_key_env.as_deref().unwrap_or(provider.key_env);
        let key = if name.is_empty() { None } else { web.variable(name) };
        let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        match key {
            None if !provider.key_env.is_empty() => Err(format!(
                "The search provider {} has no key: the environment variable {name} is not set. The operator must \
                 set it.",
                provider.name
            )),
            key => Ok(key.unwrap_or_default()),
        }
    }
}

fn read(provider: &Provider, fetched: &Fetched) -> Result<Vec<Hit>, String> {
    match fetched.status {
        StatusCode::OK if fetched.cut => Err("Its response is longer than [web.fetch] max_bytes.".to_owned()),
        StatusCode::OK => (provider.read)(&fetched.text).map_err(|why| format!("{why}.")),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if !provider.key_env.is_empty() => {
            Err(format!("It rejected the key (status {}).", fetched.status.as_u16()))
        }
        StatusCode::FORBIDDEN if provider.name == searxng::PROVIDER.name => {
            Err("It returned status 403: its settings.yml must list `json` under search.formats.".to_owned())
        }
        StatusCode::TOO_MANY_REQUESTS => Err("Its rate limit is reached (status 429); try again later.".to_owned()),
        status => Err(format!("It returned status {}.", status.as_u16())),
    }
}

/// What failed, and, for a provider that nobody chose, how to choose one.
fn failure(provider: &Provider, settings: &SearchSettings, why: &str) -> String {
    let hint = match settings.provider {
        Some(_) => "",
        None => {
            " No search provider is configured, so the search used DuckDuckGo's HTML page. The operator can set \
             [web.search] provider to searxng (with base_url), brave or tavily (with a key)."
        }
    };
    format!("The search with {} failed. {why}{hint}", provider.name)
}

/// `name=value` pairs for a query string.
fn query(pairs: &[(&str, &str)]) -> String {
    let escaped = |text: &str| encoded(text).replace("%20", "+");
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    pairs.join("&")
}

/// Reads JSON. The error is a sentence without its end.
fn json<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("Its response has an unexpected format: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{Hit, PROVIDERS, failure, find, needs_base_url, provider_names, query};

    #[test]
    fn providers_are_found_by_name() {
        assert_eq!(provider_names().collect::<Vec<_>>(), ["searxng", "brave", "tavily", "duckduckgo"]);
        assert!(find("bing").is_none() && needs_base_url("searxng") && !needs_base_url("brave"));
        for provider in PROVIDERS {
            assert!((provider.read)("no answer at all").is_err(), "{}", provider.name);
        }
    }

    #[test]
    fn parts_are_escaped_and_cleaned() {
        assert_eq!(query(&[("q", "a b&c=é"), ("n", "1")]), "q=a+b%26c%3D%C3%A9&n=1");
        let hit = Hit::new("A <b>bold</b> &amp; <i>new</i>\n title", " https://x/ ", "").unwrap();
        assert_eq!((hit.title.as_str(), hit.url.as_str()), ("A bold & new title", "https://x/"));
        assert_eq!(Hit::new("", "https://x/", "").unwrap().title, "https://x/");
        assert!(Hit::new("x", "javascript:alert(1)", "").is_none());
        assert!(Hit::new("x", "https://x/", &"word ".repeat(900)).unwrap().snippet.len() < 1_010);
    }

    #[test]
    fn a_failure_says_what_to_configure_only_when_nothing_is() {
        let (provider, mut settings) = (find("duckduckgo").unwrap(), super::SearchSettings::default());
        assert!(failure(provider, &settings, "Why.").contains("[web.search] provider"));
        settings.provider = Some("duckduckgo".into());
        assert_eq!(failure(provider, &settings, "Why."), "The search with duckduckgo failed. Why.");
    }
}
