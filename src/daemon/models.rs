//! The models' place in the daemon: the catalog with what clients added, the providers over it, and what the world is told of both.

use std::sync::Arc;

use agentsvc_api::Api;
use agentsvc_components::manifest::ModelChoice;
use agentsvc_systems::Settings;
use agentsvc_systems::config::{SecuritySettings, TriggerSettings};
use arc_swap::ArcSwap;
use tokio::sync::Mutex;

use crate::config::Config;
use crate::daemon::Error;
use crate::daemon::launch::Launch;
use crate::kernel::world_loop::Clock;
use crate::model::catalog;
use crate::model::catalog::{CatalogStore, Facts, Files, ModelCatalog, Parts, StoredCatalog};
use crate::model::provider::Providers;
use crate::model::provider::overrides::Overrides;

/// The models at start.
pub(crate) struct Models {
    /// Who can be asked, with the catalog.
    pub(crate) providers: Arc<ArcSwap<Providers>>,
    /// The daemon's default model.
    pub(crate) default: ModelChoice,
    files: Files,
    kept: StoredCatalog,
}

/// The models of the configuration, of the catalog, and of clients, and the keys and endpoints that clients set.
pub(crate) fn open(launch: &Launch, overrides: &Arc<Overrides>) -> Result<Models, Error> {
    let config = &launch.config;
    let files = Files::new(launch.home.data_dir(config.data_dir.as_deref()));
    let kept = files.load(&catalog::is_provider(|name| config.providers.contains_key(name)));
    let providers = providers_of(config, Arc::new(ModelCatalog::with(&kept)), Arc::clone(overrides))?;
    let default = config.default_of(&providers);
    Ok(Models { providers: Arc::new(ArcSwap::from_pointee(providers)), default, files, kept })
}

/// Who can be asked: the providers of a configuration, over what outlives it.
pub(crate) fn providers_of(
    config: &Config,
    catalog: Arc<ModelCatalog>,
    overrides: Arc<Overrides>,
) -> Result<Providers, crate::model::provider::Error> {
    let (providers, _) = config.models_with(catalog)?;
    Ok(providers.with_overrides(overrides))
}

impl Models {
    /// Who changes the catalog from here on; `config` is the configuration in force.
    pub(crate) fn keeper(self, config: &Arc<ArcSwap<Config>>, telling: Arc<Mutex<()>>, api: &Arc<Api>) -> CatalogStore {
        let (bridge, shown) = (api.bridge.clone(), Arc::downgrade(api));
        let Self { providers, files, kept, .. } = self;
        let (in_force, known) = (Arc::clone(config), Arc::clone(&providers));
        CatalogStore::new(Parts {
            catalog: Arc::clone(providers.load().catalog()),
            providers,
            telling,
            files,
            kept,
            settings: config.load().catalog.clone(),
            bridge,
            world: Arc::new(move || settings(&in_force.load(), &known.load())),
            told: Arc::new(move |default: &ModelChoice| {
                if let Some(api) = shown.upgrade() {
                    api.services.provide(Arc::new(agentsvc_api::model::catalog::DefaultModel::from(default)));
                }
            }),
            clock: Clock::system(),
        })
    }
}

/// What the world needs to know of the configuration and of the catalog as it is now.
pub(crate) fn settings(config: &Config, providers: &Providers) -> Settings {
    let concurrency = &config.queue.concurrency;
    let by_name = concurrency.providers.keys().map(|name| (name.to_string(), concurrency.calls_of(name)));
    let table = providers.catalog().table();
    let prices = config.prices.iter().map(|(name, price)| (name.clone(), price.price())).collect();
    let Facts { prices, context_tokens, model_context_tokens, aliases } = catalog::facts(&table, providers, &prices);
    Settings {
        default_model: config.default_of(providers),
        prices,
        context_tokens,
        model_context_tokens,
        aliases,
        provider_calls: concurrency.provider_calls,
        provider_calls_by_name: by_name.collect(),
        budget: config.budget.settings(),
        usage_retention_days: config.usage.retention_days,
        history_retention_days: config.history.retention_days,
        claim_timeout_secs: config.queue.claim_timeout_secs,
        triggers: TriggerSettings {
            default_cooldown_secs: config.triggers.default_cooldown_secs,
            max_depth: config.triggers.max_depth,
            cascade_per_minute: config.triggers.cascade_per_minute,
        },
        require_approval: config.approval.require_approval.clone(),
        approval_timeout_ms: i64::try_from(config.approval.timeout_secs.saturating_mul(1_000)).unwrap_or(i64::MAX),
        security: SecuritySettings {
            prompt_injection: config.security.prompt_injection,
            taint: config.security.taint,
            taint_approve: config.security.taint_approve.clone(),
            taint_deny: config.security.taint_deny.clone(),
        },
        a2a: config.a2a.settings(),
        max_memories_per_agent: config.proactive_memory.max_memories_per_agent,
        agents_per_user_max: config.people.agents_per_user_max,
        family_sessions_max_bytes: config.sessions.family_max_bytes,
        user_sessions_max_bytes: config.sessions.user_max_bytes,
        strangers_idle_days: config.channels.strangers_idle_days,
        family_memory_max_bytes: config.proactive_memory.family_max_bytes,
        memory: config.proactive_memory.of_turns(),
        auto_dream: config.auto_dream.settings(),
        prompt_intelligence: config.prompt_intelligence.enabled,
    }
}
