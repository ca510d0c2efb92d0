//! The accounts with the providers, in their place in the daemon.

use std::sync::Arc;

use agentsvc_api::Api;
use agentsvc_components::audit::Actor;
use agentsvc_systems::settings::Reconfigure;
use tokio::runtime::Runtime;

use super::{Front, models};
use crate::config::Config;
use crate::effects::model::provider::Providers;
use crate::effects::model::provider::overrides::Overrides;
use crate::effects::web::Web;
use crate::launch::Launch;
use crate::providers::oauth::DeviceFlow;
use crate::providers::{Accounts, Parts};

/// Opens the accounts; from here on the routes know them. The keys in the vault are opened beside the start, which waits for
/// none of them.
pub(super) fn open(
    launch: &Launch,
    front: &Front,
    providers: &Arc<Providers>,
    overrides: Arc<Overrides>,
    runtime: &Runtime,
) {
    let config = Arc::new(launch.config.clone());
    let (api, current) = (Arc::clone(&front.api), Arc::clone(providers));
    let changed = {
        let (config, api, current) = (Arc::clone(&config), Arc::downgrade(&api), Arc::clone(&current));
        move || {
            let (config, api, current) = (Arc::clone(&config), api.clone(), Arc::clone(&current));
            Box::pin(async move {
                if let Some(api) = api.upgrade() {
                    refresh(&api, &config, &current).await;
                }
            }) as _
        }
    };
    let flows = config.providers.iter().map(|(name, written)| (&**name, written.device_flow()));
    let accounts = Accounts::new(Parts {
        overrides,
        web: Web::new(config.web.settings()),
        data_dir: launch.home.data_dir(config.data_dir.as_deref()),
        device_flows: DeviceFlow::all(flows),
        bridge: api.bridge.clone(),
        providers: Arc::new(move || Arc::clone(&current)),
        changed: Arc::new(changed),
    });
    let opening = Arc::clone(&accounts);
    drop(runtime.spawn_blocking(move || {
        if opening.open_keys() {
            tracing::warn!("a provider's key in the vault does not open; calls to it fail, or take the key of the environment");
        }
    }));
    api.set_accounts(accounts);
}

/// Lets the default model follow the keys that there are now, by the rule of the start. The world and what `/api/status`
/// shows change together; a world that takes no commands any more keeps what it has.
async fn refresh(api: &Api, config: &Config, providers: &Providers) {
    let default_model = config.default_of(providers);
    let (provider, model) = (default_model.provider.to_string(), default_model.model.to_string());
    if api.default_model() == (provider.clone(), model.clone()) {
        return;
    }
    let settings = Box::new(models::settings(config, providers));
    match api.bridge.acting_as(Actor::System).ask(Reconfigure(settings)).await {
        Ok(()) => {
            tracing::info!(provider, model, "the default model follows the keys");
            api.set_default_model(&provider, &model);
        }
        Err(refusal) => tracing::warn!(%refusal, "the default model could not follow the keys"),
    }
}
