//! What the front is made of.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use agentsvc_components::kernel::limit;
use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::agent::signatures::ManifestSignatures;
use crate::audit::trail::{Trail, Walks};
use crate::backup::store::Backups;
use crate::chat::agent_feed::AgentBoard;
use crate::chat::bindings::Bindings;
use crate::config::configuration::{Configuration, ProviderKeys};
use crate::http::access::Access;
use crate::http::bridge::Bridge;
use crate::http::metrics::{Metrics, MetricsText, Probe};
use crate::http::permit::Room;
use crate::http::settings::ApiSettings;
use crate::http::shutdown::Shutdown;
use crate::log::hub::LogHub;
use crate::migration::source::Migration;
use crate::model::catalog::Models;
use crate::provider::accounts::Accounts;
use crate::provider::catalog::{Catalog, ProviderLine};
use crate::rehearsal::runs::Rehearsals;
use crate::second_factor::factor::SecondFactor;
use crate::security::auth_failures::AuthFailures;
use crate::security::systems::SecuritySystems;
use crate::session::content::Content;
use crate::snapshot::store::Worlds;
use crate::template::store::Templates;
use crate::tool::toolbox::Toolbox;
use crate::turn::hub::StreamHub;
use crate::upload::files::Files;
use crate::world::watch::WorldWatch;

/// Everything a route may need.
pub struct Api {
    /// The way into the world.
    pub bridge: Bridge,
    /// The messages and manifests on disk.
    pub content: Arc<dyn Content>,
    /// The uploads and workspaces on disk.
    pub files: Arc<dyn Files>,
    /// Where turns speak to those who watch them.
    pub hub: Arc<StreamHub>,
    /// Where log lines go to those who watch them.
    pub logs: Arc<LogHub>,
    /// The signal to stop.
    pub shutdown: Shutdown,
    /// What the front was told at start; bounds, and what a reload does not change.
    pub settings: ApiSettings,
    /// The same with what was reloaded since.
    settings_now: ArcSwap<ApiSettings>,
    /// Who may call; can be swapped while the server runs.
    pub access: Access,
    /// Counts of the HTTP server, and probes into the rest of the daemon.
    pub metrics: Metrics,
    /// How the daemon is.
    pub health: Health,
    /// The list of agents that every WebSocket shows; wants to be told of the world's events.
    pub board: AgentBoard,
    /// What the world is watched by; wants to be told of its events.
    pub world: WorldWatch,
    /// Requests without the key.
    pub(crate) auth_failures: AuthFailures,
    /// Who walks over the audit trail.
    pub(crate) walks: Walks,
    /// Room for bodies and messages of clients.
    pub(crate) held: Arc<Room>,
    catalog: OnceLock<Arc<dyn Catalog>>,
    models: OnceLock<Arc<dyn Models>>,
    trail: RwLock<Option<Arc<dyn Trail>>>,
    second_factor: OnceLock<Arc<dyn SecondFactor>>,
    accounts: OnceLock<Arc<dyn Accounts>>,
    /// Provider and model of agents that name none, once they are others than at the start.
    default_model: RwLock<Option<(String, String)>>,
    migration: OnceLock<Arc<dyn Migration>>,
    rehearsals: OnceLock<Arc<dyn Rehearsals>>,
    toolbox: RwLock<Option<Arc<dyn Toolbox>>>,
    templates: OnceLock<Arc<dyn Templates>>,
    bindings: OnceLock<Arc<dyn Bindings>>,
    manifest_signatures: OnceLock<Arc<dyn ManifestSignatures>>,
    security: OnceLock<Arc<dyn SecuritySystems>>,
    configuration: OnceLock<Arc<dyn Configuration>>,
    worlds: OnceLock<Arc<dyn Worlds>>,
    provider_keys: OnceLock<Arc<dyn ProviderKeys>>,
    backups: OnceLock<Arc<dyn Backups>>,
    pub(crate) openapi: OnceLock<Bytes>,
}

impl Api {
    /// A front for the world behind `bridge`.
    #[must_use]
    pub fn new(
        settings: ApiSettings,
        bridge: Bridge,
        content: Arc<dyn Content>,
        files: Arc<dyn Files>,
        hub: Arc<StreamHub>,
        logs: Arc<LogHub>,
        shutdown: Shutdown,
    ) -> Arc<Self> {
        Arc::new(Self {
            access: Access::new(&settings),
            metrics: Metrics::new(),
            health: Health::new(settings.restart_count),
            board: AgentBoard::default(),
            world: WorldWatch::default(),
            auth_failures: AuthFailures::default(),
            walks: Walks::new(),
            held: Arc::new(Room::new(limit::BODIES_SMALL_BYTES_MAX, settings.limits.bodies_bytes_max)),
            catalog: OnceLock::new(),
            models: OnceLock::new(),
            trail: RwLock::default(),
            second_factor: OnceLock::new(),
            accounts: OnceLock::new(),
            default_model: RwLock::new(None),
            migration: OnceLock::new(),
            rehearsals: OnceLock::new(),
            toolbox: RwLock::default(),
            templates: OnceLock::new(),
            bindings: OnceLock::new(),
            manifest_signatures: OnceLock::new(),
            security: OnceLock::new(),
            configuration: OnceLock::new(),
            worlds: OnceLock::new(),
            provider_keys: OnceLock::new(),
            backups: OnceLock::new(),
            settings_now: ArcSwap::from_pointee(settings.clone()),
            openapi: OnceLock::new(),
            bridge,
            content,
            files,
            hub,
            logs,
            shutdown,
            settings,
        })
    }

    /// Adds what `probe` knows to `/api/metrics`.
    pub fn add_probe(&self, probe: Arc<dyn Probe>) {
        self.metrics.add_probe(probe);
    }

    /// Says who knows the providers. The first one counts.
    pub fn set_catalog(&self, catalog: Arc<dyn Catalog>) {
        let _only_once = self.catalog.set(catalog);
    }

    /// Says who knows the models. The first one counts.
    pub fn set_models(&self, models: Arc<dyn Models>) {
        let _only_once = self.models.set(models);
    }

    /// Who knows the models; `None` while nobody does.
    pub(crate) fn models(&self) -> Option<Arc<dyn Models>> {
        self.models.get().cloned()
    }

    /// Says who reads the audit trail of the present world; `None` while its store is not open.
    pub fn set_trail(&self, trail: Option<Arc<dyn Trail>>) {
        *self.trail.write() = trail;
    }

    /// Who reads the audit trail; `None` while the store is being opened.
    pub(crate) fn trail(&self) -> Option<Arc<dyn Trail>> {
        self.trail.read().clone()
    }

    /// Says who judges the codes of approvals. The first one counts; without one nothing can be approved.
    pub fn set_second_factor(&self, factor: Arc<dyn SecondFactor>) {
        let _only_once = self.second_factor.set(factor);
    }

    /// Who judges the codes of approvals.
    pub(crate) fn second_factor(&self) -> Option<Arc<dyn SecondFactor>> {
        self.second_factor.get().cloned()
    }

    /// Says who keeps the keys of providers. The first one counts.
    pub fn set_accounts(&self, accounts: Arc<dyn Accounts>) {
        let _only_once = self.accounts.set(accounts);
    }

    /// Who keeps the keys of providers.
    pub(crate) fn accounts(&self) -> Option<Arc<dyn Accounts>> {
        self.accounts.get().cloned()
    }

    /// Agents that name no model ask this one from here on.
    pub fn set_default_model(&self, provider: &str, model: &str) {
        *self.default_model.write() = Some((provider.to_owned(), model.to_owned()));
    }

    /// Provider and model of agents that name none.
    #[must_use]
    pub fn default_model(&self) -> (String, String) {
        let changed = self.default_model.read().clone();
        changed.unwrap_or_else(|| {
            let settings = self.settings_now();
            (settings.default_provider.clone(), settings.default_model.clone())
        })
    }

    /// Says who reads homes of other programs. The first one counts.
    pub fn set_migration(&self, migration: Arc<dyn Migration>) {
        let _only_once = self.migration.set(migration);
    }

    /// Who reads homes of other programs.
    pub(crate) fn migration(&self) -> Option<Arc<dyn Migration>> {
        self.migration.get().cloned()
    }

    /// Says who rehearses. The first one counts.
    pub fn set_rehearsals(&self, rehearsals: Arc<dyn Rehearsals>) {
        let _only_once = self.rehearsals.set(rehearsals);
    }

    /// Who rehearses.
    pub(crate) fn rehearsals(&self) -> Option<Arc<dyn Rehearsals>> {
        self.rehearsals.get().cloned()
    }

    /// Says who knows and runs the tools in the present world, once they can run.
    pub fn set_toolbox(&self, toolbox: Arc<dyn Toolbox>) {
        *self.toolbox.write() = Some(toolbox);
    }

    /// Who knows and runs the tools; `None` while the world is loading.
    pub(crate) fn toolbox(&self) -> Option<Arc<dyn Toolbox>> {
        self.toolbox.read().clone()
    }

    /// Says who keeps the agent types. The first one counts.
    pub fn set_templates(&self, templates: Arc<dyn Templates>) {
        let _only_once = self.templates.set(templates);
    }

    /// Who keeps the agent types.
    pub(crate) fn templates(&self) -> Option<Arc<dyn Templates>> {
        self.templates.get().cloned()
    }

    /// Says who keeps the bindings of the web chat. The first one counts.
    pub fn set_bindings(&self, bindings: Arc<dyn Bindings>) {
        let _only_once = self.bindings.set(bindings);
    }

    /// Who keeps the bindings of the web chat.
    pub(crate) fn bindings(&self) -> Option<Arc<dyn Bindings>> {
        self.bindings.get().cloned()
    }

    /// Says who judges the signatures of manifests. The first one counts; without one nobody looks at them.
    pub fn set_manifest_signatures(&self, signatures: Arc<dyn ManifestSignatures>) {
        let _only_once = self.manifest_signatures.set(signatures);
    }

    /// Who judges the signatures of manifests.
    pub(crate) fn manifest_signatures(&self) -> Option<Arc<dyn ManifestSignatures>> {
        self.manifest_signatures.get().cloned()
    }

    /// Says who knows the security systems behind the front. The first one counts.
    pub fn set_security(&self, security: Arc<dyn SecuritySystems>) {
        let _only_once = self.security.set(security);
    }

    /// Who knows the security systems behind the front.
    pub(crate) fn security(&self) -> Option<Arc<dyn SecuritySystems>> {
        self.security.get().cloned()
    }

    /// Says who knows the configuration. The first one counts.
    pub fn set_configuration(&self, configuration: Arc<dyn Configuration>) {
        let _only_once = self.configuration.set(configuration);
    }

    /// Who knows the configuration.
    pub(crate) fn configuration(&self) -> Option<Arc<dyn Configuration>> {
        self.configuration.get().cloned()
    }

    /// Says who keeps the snapshots of the world. The first one counts.
    pub fn set_worlds(&self, worlds: Arc<dyn Worlds>) {
        let _only_once = self.worlds.set(worlds);
    }

    /// Who keeps the snapshots of the world.
    pub(crate) fn worlds(&self) -> Option<Arc<dyn Worlds>> {
        self.worlds.get().cloned()
    }

    /// Says who keeps keys of providers. The first one counts; without one `POST /api/init` takes none.
    pub fn set_provider_keys(&self, keys: Arc<dyn ProviderKeys>) {
        let _only_once = self.provider_keys.set(keys);
    }

    /// Says who makes and restores backups. The first one counts.
    pub fn set_backups(&self, backups: Arc<dyn Backups>) {
        let _only_once = self.backups.set(backups);
    }

    /// Who makes and restores backups.
    pub(crate) fn backups(&self) -> Option<Arc<dyn Backups>> {
        self.backups.get().cloned()
    }

    /// Who keeps keys of providers.
    pub(crate) fn provider_keys(&self) -> Option<Arc<dyn ProviderKeys>> {
        self.provider_keys.get().cloned()
    }

    /// What the front was told last.
    #[must_use]
    pub fn settings_now(&self) -> Arc<ApiSettings> {
        self.settings_now.load_full()
    }

    /// Puts other settings in force: key, origins, rate, and what is shown of them. Bounds of the server stay as they
    /// are.
    pub fn reconfigure(&self, settings: ApiSettings) {
        let before = self.settings_now();
        let access = |of: &ApiSettings| (of.api_key.clone(), of.cors_origin.clone(), of.rate_limit_per_second);
        // A new policy forgets what its clients have used, so that it is made for a reason only.
        if access(&before) != access(&settings) {
            self.access.set(&settings);
        }
        self.settings_now.store(Arc::new(settings));
    }

    /// Every provider as it is now; none while nobody knows.
    pub(crate) fn providers(&self) -> Vec<ProviderLine> {
        self.catalog.get().map(|catalog| catalog.providers()).unwrap_or_default()
    }

    /// `/api/metrics` as it is now.
    pub(crate) fn render_metrics(&self) -> String {
        let mut out = MetricsText::default();
        out.gauge("agentsvc_uptime_seconds", "Seconds since the start.", self.health.uptime_seconds());
        out.counter("agentsvc_panics_total", "Panics that were caught.", self.health.panics());
        out.gauge("agentsvc_bridge_waiting", "Commands that wait for the world.", self.bridge.waiting());
        out.gauge("agentsvc_bodies_bytes", "Bytes of bodies and messages that are held.", self.held.bytes());
        out.gauge("agentsvc_stream_sessions_watched", "Sessions that someone watches.", self.hub.watched());
        out.gauge("agentsvc_sockets", "Open WebSockets.", self.board.seats());
        out.gauge("agentsvc_rate_clients", "Clients the rate limiter remembers.", self.access.policy().clients());
        let help = "Requests without the key or with a wrong one.";
        out.counter("agentsvc_auth_failures_total", help, self.auth_failures.total());
        self.world.gather(&mut out);
        self.metrics.render(&mut out);
        out.into_string()
    }
}

/// How the daemon is (spec 2, GET /api/health). Set from anywhere, read without a lock.
pub struct Health {
    started: Instant,
    store_down: AtomicBool,
    panics: AtomicU64,
    restarts: u64,
}

impl Health {
    fn new(restarts: u64) -> Self {
        Self { started: Instant::now(), store_down: AtomicBool::new(false), panics: AtomicU64::new(0), restarts }
    }

    /// Seconds since the start.
    #[must_use]
    pub fn uptime_seconds(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// Can the store be written?
    #[must_use]
    pub fn store_is_up(&self) -> bool {
        !self.store_down.load(Ordering::Relaxed)
    }

    /// The store can, or can no longer, be written.
    pub fn set_store_up(&self, up: bool) {
        self.store_down.store(!up, Ordering::Relaxed);
    }

    /// Panics since the start.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Something panicked and was caught.
    pub fn note_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Starts of this home that followed a crash.
    #[must_use]
    pub const fn restarts(&self) -> u64 {
        self.restarts
    }
}
