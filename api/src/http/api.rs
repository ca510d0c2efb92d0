//! The API as a whole: the server's own parts, and the services that domains find in it.

use agentsvc_components::kernel::error_codes;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use agentsvc_components::kernel::limit;
use arc_swap::ArcSwap;
use bytes::Bytes;
use tokio::time::Instant;

use crate::http::access::Access;
use crate::http::answers::Answers;
use crate::http::bridge::Bridge;
use crate::http::domain::{Domains, ErrorsUnder, Owns, Queue};
use crate::http::elsewhere::Elsewhere;
use crate::http::error::Error;
use crate::http::metrics::{Metrics, MetricsText, Probe};
use crate::http::peer::Peers;
use crate::http::permit::{Parts, Permits};
use crate::http::principal::Principal;
use crate::http::services::Services;
use crate::http::settings::ApiSettings;
use crate::http::shutdown::Shutdown;
use crate::http::table::Table;

/// Requests without the key, where one is set, have this part of the room for bodies.
const KEYLESS_PART: usize = 4;

/// Everything a route may need.
pub struct Api {
    /// The way into the world.
    pub bridge: Bridge,
    /// The signal to stop.
    pub shutdown: Shutdown,
    /// What the API was told at start; bounds, and what a reload does not change.
    pub settings: ApiSettings,
    /// The same with what was reloaded since.
    settings_now: ArcSwap<ApiSettings>,
    /// Who may call; can be swapped while the server runs.
    pub access: Access,
    /// Counts of the HTTP server, and probes into the rest of the daemon.
    pub metrics: Metrics,
    /// How the daemon is.
    pub health: Health,
    /// The services and the state of domains.
    pub services: Services,
    /// Where requests are answered, if not here.
    pub elsewhere: Elsewhere,
    /// Room for bodies and messages of clients.
    pub(crate) permits: Arc<Permits>,
    /// Room for bodies and messages of users and named keys with a limited role.
    pub(crate) limited_permits: Parts,
    /// Room for bodies of requests without the key, where one is set.
    pub(crate) keyless_permits: Arc<Permits>,
    /// Room for answers that wait for clients.
    pub(crate) answers: Arc<Answers>,
    /// The addresses that have connections.
    pub(crate) peers: Arc<Peers>,
    /// Every route.
    pub(crate) table: &'static Table,
    domains: &'static Domains,
    errors: Vec<ErrorsUnder>,
    pub(crate) openapi: OnceLock<Bytes>,
}

impl Api {
    /// The API of `domains` over the world behind `bridge`.
    #[must_use]
    pub fn new(domains: &'static Domains, settings: ApiSettings, bridge: Bridge, shutdown: Shutdown) -> Arc<Self> {
        Arc::new(Self {
            access: Access::new(&settings),
            metrics: Metrics::new(domains.table()),
            health: Health::new(settings.restart_count),
            services: Services::default(),
            elsewhere: Elsewhere::new(settings.limits.connections_max / 2),
            permits: Arc::new(Permits::new(limit::BODIES_SMALL_BYTES_MAX, settings.limits.bodies_bytes_max)),
            limited_permits: Parts::new(limit::BODIES_SMALL_BYTES_MAX, settings.limits.bodies_bytes_max),
            keyless_permits: Arc::new(Permits::new(
                limit::BODIES_SMALL_BYTES_MAX / KEYLESS_PART,
                settings.limits.bodies_bytes_max / KEYLESS_PART,
            )),
            answers: Arc::new(Answers::new(settings.limits.answers_bytes_max)),
            peers: Arc::new(Peers::new(settings.limits.connections_max)),
            table: domains.table(),
            domains,
            errors: domains.list().iter().filter_map(|domain| domain.errors).collect(),
            settings_now: ArcSwap::from_pointee(settings.clone()),
            openapi: OnceLock::new(),
            bridge,
            shutdown,
            settings,
        })
    }

    /// Adds what `probe` knows to `/api/metrics`.
    pub fn add_probe(&self, probe: Arc<dyn Probe>) {
        self.metrics.add_probe(probe);
    }

    /// Room for bodies and messages of a client that has shown a key, or needs none.
    pub(crate) fn permits_of(&self, principal: &Principal) -> Arc<Permits> {
        let limited_user = principal.limited_user();
        limited_user.map_or_else(|| Arc::clone(&self.permits), |user| self.limited_permits.part(user))
    }

    /// The state of type `T`, made when it is first asked for.
    pub(crate) fn state<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        self.services.state()
    }

    /// The service of type `T`.
    ///
    /// # Errors
    /// 503 while nobody provides it.
    pub(crate) fn service<T: ?Sized + Send + Sync + 'static>(&self) -> Result<Arc<T>, Error> {
        self.services.get().ok_or_else(|| Error::unavailable("the daemon is loading", 1).code(error_codes::LOADING))
    }

    /// What the API was told last.
    #[must_use]
    pub fn settings_now(&self) -> Arc<ApiSettings> {
        self.settings_now.load_full()
    }

    /// Puts other settings in force: key, origins, rate, and what is shown of them. Bounds of the server stay as they
    /// are.
    pub fn reconfigure(&self, settings: ApiSettings) {
        let before = self.settings_now();
        let access = |of: &ApiSettings| (of.api_key.clone(), of.cors_origin.clone(), of.rate_limit_per_second);
        if access(&before) != access(&settings) {
            self.access.set(&settings);
        }
        self.settings_now.store(Arc::new(settings));
    }

    /// What becomes of the errors of `path`.
    pub(crate) fn error_form(&self, path: &str) -> fn(Error) -> Error {
        let form = self.errors.iter().find(|(prefix, _)| path.starts_with(prefix));
        form.map_or(std::convert::identity, |(_, form)| *form)
    }

    /// What says whether an agent belongs to a user.
    pub(crate) fn owns(&self) -> Option<Owns> {
        self.domains.list().iter().find_map(|domain| domain.owns)
    }

    /// The queues of the domains.
    pub(crate) fn queues(&self) -> impl Iterator<Item = Queue> {
        self.domains.list().iter().filter_map(|domain| domain.queues).flat_map(|queues| queues(self))
    }

    /// A request of the client at `peer` for the route `route`, a pattern, came without the key.
    pub(crate) fn note_unauthorized(self: &Arc<Self>, peer: IpAddr, route: &'static str) {
        for note in self.domains.list().iter().filter_map(|domain| domain.on_unauthorized) {
            note(self, peer, route);
        }
    }

    /// `/api/metrics` as it is now.
    pub(crate) fn render_metrics(&self) -> String {
        let mut out = MetricsText::default();
        out.gauge("agentsvc_uptime_seconds", "Seconds since the daemon started.", self.health.uptime_seconds());
        out.counter("agentsvc_panics_total", "Panics caught.", self.health.panics());
        out.gauge("agentsvc_bridge_waiting", "Commands waiting for the world.", self.bridge.waiting());
        let bodies = self.permits.bytes() + self.limited_permits.bytes() + self.keyless_permits.bytes();
        out.gauge("agentsvc_bodies_bytes", "Bytes of request bodies and messages in memory.", bodies);
        let unread = self.answers.bytes() + self.peers.unread_bytes();
        out.gauge("agentsvc_answers_bytes", "Bytes of answers that wait for clients.", unread);
        let help = "Streamed answers broken off because too many answers waited for clients.";
        out.counter("agentsvc_answers_broken_off_total", help, self.answers.broken_off());
        out.gauge("agentsvc_rate_clients", "Clients tracked by the rate limiter.", self.access.policy().clients());
        for gather in self.domains.list().iter().filter_map(|domain| domain.gather) {
            gather(self, &mut out);
        }
        self.elsewhere.gather(&mut out);
        self.metrics.render(&mut out);
        out.into_string()
    }
}

/// Seconds after which one may ask again whether changes can be stored.
pub(crate) const STORE_RETRY_SECS: u32 = 5;

/// How the daemon is (spec 2, GET /api/health). Set from anywhere, read without a lock.
pub struct Health {
    started: Instant,
    store_down: AtomicBool,
    read_only: AtomicBool,
    panics: AtomicU64,
    restarts: u64,
}

impl Health {
    fn new(restarts: u64) -> Self {
        Self {
            started: Instant::now(),
            store_down: AtomicBool::new(false),
            read_only: AtomicBool::new(false),
            panics: AtomicU64::new(0),
            restarts,
        }
    }

    /// Seconds since the daemon started.
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

    /// Are changes refused because the disk is full?
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only.load(Ordering::Relaxed)
    }

    /// May something be changed?
    ///
    /// # Errors
    /// 503 `read_only` while changes are refused because the disk is full.
    pub fn check_room(&self) -> Result<(), Error> {
        if !self.is_read_only() {
            return Ok(());
        }
        let text = "the disk is full: reads are answered, changes are refused";
        Err(Error::of(error_codes::READ_ONLY, text).retry_after(STORE_RETRY_SECS))
    }

    /// Changes are, or are no longer, refused because the disk is full.
    pub fn set_read_only(&self, read_only: bool) {
        self.read_only.store(read_only, Ordering::Relaxed);
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
