//! The HTTP clients of the model drivers: built when first used, then kept for ever with their pools.

use agentsvc_components::turn::outcome::FailureCode;
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use reqwest::{Client, Url};

use super::error::CallError;
use super::pace::Pace;
use crate::kernel::host::is_loopback;

/// Idle connections kept per host. As many as calls may be out at once under load, so that none is opened twice.
const POOL_IDLE_MAX: usize = 1_024;
/// How long an idle connection is kept.
const POOL_IDLE_SECS: u64 = 90;

/// How long a provider may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// To accept the connection, TLS included.
    pub connect: Duration,
    /// Between two pieces of the answer, and until the first. Long: a model that thinks sends nothing meanwhile.
    pub read: Duration,
    /// For one try, from begin to end.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), read: Duration::from_secs(300), total: Duration::from_secs(600) }
    }
}

/// A client as built, or why it could not be.
type Built = Result<Client, String>;

/// The two clients: one for plain HTTP to this machine, one for the world.
///
/// The first needs no certificates and goes through no proxy; the second loads the machine's root certificates, which
/// costs milliseconds and memory, so neither is built before it is needed.
#[derive(Debug)]
pub struct Clients {
    timeouts: Timeouts,
    near: OnceLock<Built>,
    far: OnceLock<Built>,
    pace: Arc<Pace>,
}

impl Clients {
    /// No client yet.
    pub fn new(timeouts: Timeouts) -> Self {
        Self { timeouts, near: OnceLock::new(), far: OnceLock::new(), pace: Arc::default() }
    }

    /// How fast each provider may be asked, as its answers taught.
    pub const fn pace(&self) -> &Arc<Pace> {
        &self.pace
    }

    /// The client for `url`.
    ///
    /// # Errors
    /// `Internal` when it cannot be built, as when the machine has no usable root certificates.
    pub fn get(&self, url: &Url) -> Result<&Client, CallError> {
        let near = url.scheme() == "http" && url.host_str().is_some_and(is_loopback);
        let built = if near {
            self.near.get_or_init(|| build(self.timeouts, true))
        } else {
            self.far.get_or_init(|| build(self.timeouts, false))
        };
        built.as_ref().map_err(|error| {
            CallError::last(FailureCode::Internal, format!("The HTTP client could not be built: {error}."))
        })
    }
}

fn build(timeouts: Timeouts, near: bool) -> Built {
    static CRYPTO: Once = Once::new();
    // An error means that the process already has a provider of its own choice, which is as good.
    CRYPTO.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let builder = Client::builder()
        .user_agent(concat!("agentsvc/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(timeouts.connect)
        .read_timeout(timeouts.read)
        .timeout(timeouts.total)
        .pool_max_idle_per_host(POOL_IDLE_MAX)
        .pool_idle_timeout(Duration::from_secs(POOL_IDLE_SECS))
        .tcp_nodelay(true)
        // A redirected POST becomes a GET, and a key must not wander.
        .redirect(reqwest::redirect::Policy::none());
    let builder = if near { builder.no_proxy().tls_certs_only([]) } else { builder };
    builder.build().map_err(|error| error.to_string())
}
