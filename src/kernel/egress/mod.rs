//! The one way out for tools: every fetch that an agent causes goes through [`Web::fetch`].
//!
//! A fetch is a chain of hops. For each hop, the first and every redirect alike:
//!
//! 1. the URL is read once and checked ([`target`]): http or https, no user or password, no port of another protocol;
//! 2. the host is granted by the agent's manifest (`[capabilities] network`) ([`policy`]);
//! 3. its name is looked up once ([`dns`]) and **every** address must be public ([`address`]), unless the operator
//!    opened the host in `[web.fetch] ssrf_allowed_hosts` ([`allow`]);
//! 4. the client connects to exactly those addresses: no second lookup, no proxy, no redirect of its own, no
//!    connection kept from an earlier fetch;
//! 5. the body is unpacked while it arrives, up to `max_bytes` ([`body`]).
//!
//! The whole chain has one time limit. Nothing is built before the first fetch.

pub(crate) mod address;
pub(crate) mod allow;
pub(crate) mod body;
mod dns;
mod download;
pub(crate) mod error;
pub(crate) mod fetch;
#[cfg(test)]
mod fetch_tests;
#[cfg(test)]
mod fuzz;
pub(crate) mod media;
mod memory;
pub(crate) mod policy;
mod post;
mod relay;
mod retry_after;
pub(crate) mod site;
pub(crate) mod target;
mod vet;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agentsvc_components::kernel::limit::{WEB_FETCHES_FAMILY_MAX, WEB_FETCHES_MAX};
use arc_swap::ArcSwap;

use agentsvc_api::http::places::Places;

pub use self::allow::AllowedHosts;
use self::dns::{Lookup, SystemLookup};
pub(crate) use self::download::{Download, Downloaded};
pub(crate) use self::error::Error;
pub(crate) use self::fetch::{Fetched, Request};
pub(crate) use self::media::Media;
pub(crate) use self::policy::{granted, private_places_open};
pub(crate) use self::post::{Post, Posted};
pub(crate) use self::relay::{Relay, Relayed};
pub(crate) use self::retry_after::retry_after;
pub(crate) use self::site::Site;

/// Bytes of a body, unless `[web.fetch] max_bytes` says otherwise.
pub const MAX_BYTES_DEFAULT: u64 = 5 << 20;
/// Seconds for a whole fetch, unless `[web.fetch] timeout_secs` says otherwise.
pub const TIMEOUT_SECS_DEFAULT: u64 = 30;
/// Characters of a page that one call gives, unless `[web.fetch] max_chars` says otherwise.
pub const MAX_CHARS_DEFAULT: u64 = 20_000;

/// What the operator sets for the web tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSettings {
    /// Private hosts that may be reached all the same.
    pub allowed: AllowedHosts,
    /// Bytes of a body, unpacked; the rest is not read.
    pub max_bytes: usize,
    /// For a whole fetch, redirects and the wait for its turn included.
    pub timeout: Duration,
    /// Characters that one call of `web_fetch` gives at most.
    pub max_chars: usize,
}

impl Default for WebSettings {
    fn default() -> Self {
        Self {
            allowed: AllowedHosts::default(),
            max_bytes: MAX_BYTES_DEFAULT as usize,
            timeout: Duration::from_secs(TIMEOUT_SECS_DEFAULT),
            max_chars: MAX_CHARS_DEFAULT as usize,
        }
    }
}

/// The way to the web for tools. Cheap to copy; costs next to nothing until it is first used.
#[derive(Clone)]
pub struct Web {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    settings: ArcSwap<WebSettings>,
    lookup: Box<dyn Lookup>,
    /// The TLS configuration for https: loading the machine's root certificates takes milliseconds and memory.
    tls: OnceLock<Result<rustls::ClientConfig, String>>,
    /// Fetches that may be under way at once; the rest waits.
    turns: Places,
    /// Names that are looked up for agents at once; the rest waits.
    names: Places,
    /// Memory for the answers to the requests of browsers; what finds none waits.
    relayed: memory::Shares,
    /// Reads the environment; a seam for tests.
    pub(crate) environment: fn(&str) -> Option<String>,
}

impl Default for Web {
    fn default() -> Self {
        Self::new(WebSettings::default())
    }
}

impl Web {
    /// With these settings and the resolver of the machine.
    pub fn new(settings: WebSettings) -> Self {
        Self::with_lookup(settings, Box::new(SystemLookup))
    }

    fn with_lookup(settings: WebSettings, lookup: Box<dyn Lookup>) -> Self {
        let environment = |name: &str| std::env::var(name).ok();
        let (settings, turns) = (ArcSwap::from_pointee(settings), Places::new(WEB_FETCHES_MAX, WEB_FETCHES_FAMILY_MAX));
        let (relayed, names) = (memory::Shares::default(), Places::new(dns::NAMES_AGENTS_MAX, dns::NAMES_FAMILY_MAX));
        Self { inner: Arc::new(Inner { settings, lookup, tls: OnceLock::new(), turns, names, relayed, environment }) }
    }

    /// What the operator set.
    pub(crate) fn settings(&self) -> Arc<WebSettings> {
        self.inner.settings.load_full()
    }

    /// The value of a variable of the environment.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        (self.inner.environment)(name)
    }

    /// Puts other settings in force. A fetch that is under way ends with those it began with.
    pub fn set(&self, settings: WebSettings) {
        self.inner.settings.store(Arc::new(settings));
    }
}

impl std::fmt::Debug for Web {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Web").field("settings", &self.inner.settings.load()).finish_non_exhaustive()
    }
}
