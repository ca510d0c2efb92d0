//! The accounts with the providers of models (spec 2, Providers): keys, endpoints, sign-ins, and whether they answer.
//!
//! | file | holds |
//! |---|---|
//! | [`front`] | what the routes ask, and in which order a change is made: on record, on disk, in memory, in the world |
//! | [`view`] | what is shown of a provider |
//! | [`probe`] | the call that shows whether a provider answers |
//! | [`endpoints`] | the URLs that were set over the API, on disk |
//! | [`detect`] | looking for runtimes on this machine |
//! | [`oauth`] | signing in, and keeping the tokens fresh |
//!
//! Keys and tokens are kept in the vault, and in memory by
//! [`Overrides`](crate::model::provider::overrides::Overrides), from which calls take them.

pub(crate) mod cli;
pub mod config;
mod detect;
mod endpoints;
mod front;
pub mod oauth;
mod probe;
mod view;

use agentsvc_api::http::error_codes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_api::provider::accounts::ProviderError;
use agentsvc_components::kernel::limit;
use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, Semaphore};

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::egress::Web;
use crate::kernel::home::Home;
use crate::kernel::vault::{KeySource, Vault};
use crate::model::http::{Clients, Timeouts};
use crate::model::provider::overrides::Overrides;
use crate::model::provider::{Provider, Providers};
use crate::model::retry::RetryPolicy;
use crate::model::{Drivers, ModelSettings};
use endpoints::Endpoints;
use oauth::{DeviceFlow, Flows, Refresher};

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "provider",
    uses: &["model", "audit", "budget", "prompt", "manifest", "session", "turn"],
    commands: &[Subcommand::group::<cli::Providers>(
        15,
        "providers",
        "List and test model providers, set keys and sign in",
    )
    .examples(&[
        Example::new(
            "providers set-key openai",
            "Store a key; it is read from the terminal, not from the command line",
        ),
        Example::new("providers test openai", "Check that the key works"),
        Example::new("providers list --usable", "List the providers that are ready"),
    ])
    .also("provider")
    .under(Group::Connections)],
    ..Domain::EMPTY
};

/// How long a provider may take to answer a test.
const TEST_TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(5), read: Duration::from_secs(20), total: Duration::from_secs(30) };
/// How long a sign-in's server may take.
const LOGIN_TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(5), read: Duration::from_secs(10), total: Duration::from_secs(15) };
/// How long a runtime on this machine may take.
const NEAR_TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(1), read: Duration::from_secs(2), total: Duration::from_secs(3) };

/// What clients of the API set about providers in a home, for those who look at it without a daemon. Nothing is opened yet.
pub fn kept(home: &Home, data_dir: Option<&Path>) -> Arc<Overrides> {
    let overrides = Overrides::new(Vault::new(home.vault_dir(), KeySource::from_environment()));
    overrides.set_base_urls(Endpoints::new(&home.data_dir(data_dir)).load());
    Arc::new(overrides)
}

/// Gives the providers as they are configured now.
pub type Current = Arc<dyn Fn() -> Arc<Providers> + Send + Sync>;
/// Lets the daemon see that keys have come or gone: the default model may be another one.
pub type Changed = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// What the accounts need from the rest of the daemon.
pub struct Parts {
    /// The providers as they are configured now.
    pub providers: Current,
    /// Where keys and endpoints take effect.
    pub overrides: Arc<Overrides>,
    /// Decides which URLs may be set over the API.
    pub web: Web,
    /// Where the endpoints are kept.
    pub data_dir: PathBuf,
    /// Where one signs in, by provider.
    pub device_flows: BTreeMap<Box<str>, DeviceFlow>,
    /// The way into the world, for metering and the audit trail.
    pub bridge: Bridge,
    /// Told when keys came or went.
    pub changed: Changed,
}

/// The accounts.
pub struct Credentials {
    parts: Parts,
    endpoints: Endpoints,
    /// One change at a time.
    changing: Mutex<()>,
    /// Of tests; the retries of ordinary calls would hide what a test is to show.
    drivers: Drivers,
    tests: Semaphore,
    near: Clients,
    flows: Flows,
    refresher: Arc<Refresher>,
}

impl Credentials {
    /// The accounts, with the endpoints on disk in force. Waits for the disk.
    pub fn new(parts: Parts) -> Arc<Self> {
        let endpoints = Endpoints::new(&parts.data_dir);
        parts.overrides.set_base_urls(endpoints.load());
        let refresher = Arc::new(Refresher::new(
            Arc::clone(&parts.overrides),
            parts.device_flows.clone(),
            Clients::new(LOGIN_TIMEOUTS),
        ));
        parts.overrides.set_refresh({
            let refresher = Arc::clone(&refresher);
            Box::new(move |name| {
                let (refresher, name) = (Arc::clone(&refresher), name.to_owned());
                // A task of its own: a token that was turned in is stored, whoever gives up waiting.
                Box::pin(async move {
                    drop(tokio::spawn(async move { refresher.refresh(&name).await }).await);
                })
            })
        });
        Arc::new(Self {
            endpoints,
            changing: Mutex::new(()),
            drivers: Drivers::new(&ModelSettings { timeouts: TEST_TIMEOUTS, retry: RetryPolicy::default() }),
            tests: Semaphore::new(limit::PROVIDER_TESTS_MAX),
            near: Clients::new(NEAR_TIMEOUTS),
            flows: Flows::default(),
            refresher,
            parts,
        })
    }

    /// Could `key` be kept for the provider `name`? Changes nothing.
    pub fn check_key(&self, name: &str, key: &str) -> Result<(), ProviderError> {
        self.takes_a_key(name)?;
        front::checked(key).map(drop)
    }

    /// Opens the keys in the vault, so that no call has to. Waits for the disk. True when one of them does not open.
    pub fn open_keys(&self) -> bool {
        self.parts.overrides.open_all()
    }

    /// Reads again what is on the disk, where others than these accounts have put it. Waits for the disk.
    pub fn read_again(&self) {
        self.parts.overrides.set_base_urls(self.endpoints.load());
        self.parts.overrides.forget_read();
        self.providers().look_for_keys();
        let _is_damaged = self.open_keys();
    }

    /// Lets the daemon see that keys have come or gone.
    pub async fn keys_changed(&self) {
        (self.parts.changed)().await;
    }

    fn providers(&self) -> Arc<Providers> {
        (self.parts.providers)()
    }

    /// The provider called `name`.
    fn provider(&self, name: &str) -> Result<Provider, ProviderError> {
        let found = self.providers().get(name).cloned();
        found.ok_or_else(|| ProviderError::Unknown(format!("provider not found: {name}")))
    }
}

/// Runs what waits for the disk on a thread that may.
async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ProviderError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a provider change was interrupted");
        ProviderError::NotKept { code: error_codes::NOT_STORED, message: "the change was interrupted".to_owned() }
    })
}
