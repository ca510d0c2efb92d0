//! What external agents need of the daemon.

use std::sync::Arc;

use agentsvc_components::a2a::outbound::{A2aCard, A2aSecret};
use futures_util::future::BoxFuture;

/// A header that requests to an external agent are to carry.
#[derive(Clone, PartialEq, Eq)]
pub struct GivenHeader {
    /// Its name.
    pub name: String,
    /// Its value, a secret.
    pub value: String,
}

impl std::fmt::Debug for GivenHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GivenHeader").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What discovering an external agent brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovered {
    /// What its card says.
    pub card: A2aCard,
    /// The header that was given, sealed for the origin of the URL.
    pub secret: Option<A2aSecret>,
}

/// Why discovering an external agent brought nothing; sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoverFailure {
    /// The URL may not be used.
    Url(String),
    /// The header may not be used.
    Header(String),
    /// Nothing answers there.
    Unreachable(String),
    /// What answers has no agent card that can be used.
    Card(String),
    /// The vault cannot be used.
    Vault(String),
}

impl std::fmt::Display for DiscoverFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url(why) | Self::Header(why) | Self::Unreachable(why) | Self::Card(why) | Self::Vault(why) => {
                f.write_str(why)
            }
        }
    }
}

/// Reaches external agents. The daemon provides it.
pub trait A2aOutbound: Send + Sync + 'static {
    /// The URL of an external agent in its one spelling, whether that or the one of its card is given.
    ///
    /// # Errors
    /// Why it may not be used, in a sentence.
    fn spelled(&self, url: &str) -> Result<String, String>;

    /// Fetches the card of the external agent at `url`, with the header that is `given` or `known`.
    ///
    /// # Errors
    /// [`DiscoverFailure`].
    fn discover(
        self: Arc<Self>,
        url: String,
        given: Option<GivenHeader>,
        known: Option<A2aSecret>,
    ) -> BoxFuture<'static, Result<Discovered, DiscoverFailure>>;

    /// Messages to external agents in a minute.
    fn per_minute(&self) -> u32;
}
