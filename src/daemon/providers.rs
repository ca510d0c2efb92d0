//! The accounts with the providers, in their place in the daemon.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::Api;
use agentsvc_api::config::configuration::ProviderKeys;
use agentsvc_api::http::bridge::Bridge;
use agentsvc_api::model::catalog::DefaultModel;
use agentsvc_api::provider::accounts::{ProviderCredentials as _, ProviderError};
use agentsvc_components::Actor;
use agentsvc_systems::config::Reconfigure;
use arc_swap::ArcSwap;
use tokio::runtime::{Handle, Runtime};

use crate::config::Config;
use crate::daemon::launch::Launch;
use crate::daemon::{ApiAdapter, models};
use crate::model::provider::Providers;
use crate::model::provider::overrides::Overrides;
use crate::provider::oauth::DeviceFlow;
use crate::provider::{Credentials, Parts};

/// How often it is looked whether the world is loaded, and the pause in between.
const LOOKS_MAX: u32 = 1_200;
/// See [`LOOKS_MAX`].
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Opens the accounts; from here on the routes know them. The keys in the vault are opened beside the start, which waits for
/// none of them.
pub(crate) fn open(
    launch: &Launch,
    front: &ApiAdapter,
    current: &Arc<ArcSwap<Providers>>,
    in_force: &Arc<ArcSwap<Config>>,
    overrides: Arc<Overrides>,
    runtime: &Runtime,
) -> Arc<Credentials> {
    let config = &launch.config;
    let (api, current) = (Arc::clone(&front.api), Arc::clone(current));
    let changed = {
        let (config, api, current) = (Arc::clone(in_force), Arc::downgrade(&api), Arc::clone(&current));
        let telling = Arc::clone(&front.telling);
        move || {
            let (config, api, current) = (Arc::clone(&config), api.clone(), Arc::clone(&current));
            let telling = Arc::clone(&telling);
            Box::pin(async move {
                if let Some(api) = api.upgrade() {
                    let _alone = telling.lock().await;
                    refresh(&api, &config.load_full(), &current.load_full()).await;
                }
            }) as _
        }
    };
    let flows = config.providers.iter().map(|(name, written)| (&**name, written.device_flow()));
    let accounts = Credentials::new(Parts {
        overrides,
        web: front.tools.web.clone(),
        data_dir: launch.home.data_dir(config.data_dir.as_deref()),
        device_flows: DeviceFlow::all(flows),
        bridge: api.bridge.clone(),
        providers: Arc::new(move || current.load_full()),
        changed: Arc::new(changed),
    });
    drop(runtime.spawn(open_keys(Arc::clone(&accounts), api.bridge.clone())));
    let keys = Keys { accounts: Arc::clone(&accounts), handle: runtime.handle().clone() };
    api.services.provide::<dyn agentsvc_api::config::configuration::ProviderKeys>(Arc::new(keys));
    api.services.provide::<dyn agentsvc_api::provider::accounts::ProviderCredentials>(Arc::clone(&accounts) as _);
    accounts
}

/// Takes keys of the first configuration (`POST /api/init`).
struct Keys {
    accounts: Arc<Credentials>,
    handle: Handle,
}

impl ProviderKeys for Keys {
    fn check(&self, provider: &str, key: &str) -> Result<(), String> {
        self.accounts.check_key(provider, key).map_err(|error| error.to_string())
    }

    fn keep(&self, provider: &str, key: &str) -> Result<(), ProviderError> {
        let kept = Arc::clone(&self.accounts).set_key(provider.to_owned(), key.to_owned());
        self.handle.block_on(kept)
    }
}

/// Opens the keys in the vault. When one of them does not open the default model may be another one than the start thought,
/// which knew their names alone.
async fn open_keys(accounts: Arc<Credentials>, bridge: Bridge) {
    let opening = Arc::clone(&accounts);
    let is_damaged = tokio::task::spawn_blocking(move || opening.open_keys()).await.unwrap_or(true);
    if !is_damaged {
        return;
    }
    tracing::warn!(
        "a provider's key in the vault cannot be decrypted; its calls fail or use the key of the \
        environment"
    );
    follow_keys(accounts, bridge).await;
}

/// Lets the default model follow the keys that there are now, as soon as the world takes commands.
pub(super) async fn follow_keys(accounts: Arc<Credentials>, bridge: Bridge) {
    for _ in 0..LOOKS_MAX {
        if bridge.is_open() {
            return accounts.keys_changed().await;
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

/// Lets the default model follow the keys that there are now, by the rule of the start. The world and what `/api/status`
/// shows change together; a world that takes no commands any more keeps what it has.
async fn refresh(api: &Api, config: &Config, providers: &Providers) {
    let default_model = config.default_of(providers);
    let shown = DefaultModel::from(&default_model);
    if *api.services.state::<DefaultModel>() == shown {
        return;
    }
    let settings = Box::new(models::settings(config, providers));
    match api.bridge.acting_as(Actor::System).ask(Reconfigure(settings)).await {
        Ok(()) => {
            tracing::info!(
                provider = shown.provider,
                model = shown.model,
                "the default model was changed to match \
                the available keys"
            );
            api.services.provide(Arc::new(shown));
        }
        Err(refusal) => tracing::warn!(%refusal, "the default model could not be changed to match the available keys"),
    }
}
