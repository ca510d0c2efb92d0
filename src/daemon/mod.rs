//! The daemon: wires the domains together, serves, and ends them in order.
//!
//! Start: listen first, so that health answers at once; then open the store, load the world and start its
//! thread. There is no other way to start, after a crash or after a graceful stop.
//!
//! Stop: the server lets its requests end, the world takes what has arrived, the writer stores it. A kill at any
//! point leaves a committed step, so that all this only finishes sooner.

mod assistant;
pub(crate) mod audit;
mod backups;
pub mod cli;
pub(crate) mod journals;
pub mod launch;
mod listeners;
pub(crate) mod live;
pub(crate) mod models;
pub mod performer;
mod probes;
mod providers;
mod stop;
mod tools;
pub(crate) mod world;

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agentsvc_api::config::configuration::Configuration;
use agentsvc_api::http::bridge::{Bridge, bridge};
use agentsvc_api::http::principal;
use agentsvc_api::http::settings::{ApiSettings, Build, Limits};
use agentsvc_api::http::shutdown::Shutdown;
use agentsvc_api::model::catalog::DefaultModel;
use agentsvc_api::provider::catalog::Catalog;
use agentsvc_api::security::systems::SecuritySystems;
use agentsvc_api::snapshot::store::SnapshotService;
use agentsvc_api::upload::files::Files;
use agentsvc_api::world::installation::Installation;
use agentsvc_api::{Api, DOMAINS};
use arc_swap::ArcSwap;
use journals::{begin, exchange_of};
use listeners::{listen, listen_beside};
use live::{Live, LiveParts};
use tokio::runtime::{Handle, Runtime};

use crate::approval::config::SecondFactor;
use crate::cluster::Running;
use crate::config::Config;
use crate::daemon::cli::detach;
use crate::daemon::launch::Launch;
use crate::kernel::cli::output;
use crate::kernel::domain::Opening;
use crate::kernel::exchange;
use crate::kernel::exchange::Exchange;
use crate::kernel::home::Address;
use crate::kernel::retention::RetentionClock;
use crate::kernel::sandbox::Workspaces;
use crate::kernel::settings::Settings;
use crate::kernel::store::deferred::DeferredStore;
use crate::kernel::vault::{KeySource, Vault};
use crate::kernel::world_loop::Clock;
use crate::model::ProviderCatalog;
use crate::model::provider::Providers;
use crate::model::provider::overrides::Overrides;
use crate::replay::inputs;
use crate::second_factor::{Totp, TotpSettings};
use crate::security::Systems;
use crate::snapshot::worlds::Snapshots;
use crate::tool::toolset::ToolParts;
use crate::upload::LocalFiles;

/// Why the daemon ended otherwise than by being told to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be listened at.
    #[error("cannot listen on {listen}: {source}")]
    Listen {
        /// The address of the configuration.
        listen: std::net::SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something the system should give was not given.
    #[error("{what}: {source}")]
    System {
        /// What was asked for.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The providers of the configuration make no sense.
    #[error(transparent)]
    Providers(#[from] crate::model::provider::Error),
    /// The home could not be written.
    #[error(transparent)]
    Home(#[from] crate::kernel::home::Error),
    /// The vault could not be opened.
    #[error(transparent)]
    Vault(#[from] crate::audit::vault::Error),
    /// The store could not be opened or read.
    #[error(transparent)]
    Store(#[from] crate::kernel::store::Error),
    /// The world did not come to life.
    #[error(transparent)]
    World(exchange::Error),
    /// The stored world contradicts itself.
    #[error("the stored world cannot be loaded: {0}")]
    Restore(#[from] agentsvc_systems::kernel::record::Error),
    /// The node cannot be one of its cluster.
    #[error("{0}")]
    Cluster(String),
    /// The world or the store failed while running; what was acknowledged is on disk.
    #[error("{0}")]
    Fatal(String),
}

impl Error {
    /// Why a world did not come to life, for those who do not know the daemon: what its store or its journal said is told as it is.
    fn of_world(self) -> exchange::Error {
        match self {
            Self::Store(error) => error.into(),
            other => other.into(),
        }
    }
}

pub(crate) fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::System { what, source }
}

/// Runs the daemon until it is told to stop.
pub(crate) fn run(launch: &Launch) -> Result<(), Error> {
    let config = &launch.config;
    let listener = listen(config)?;
    let address = listener.local_addr().map_err(system("cannot read the bound address"))?;
    let listeners = [Some(listener), listen_beside(address)].into_iter().flatten();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("front")
        .enable_all()
        .build()
        .map_err(system("cannot start the runtime"))?;
    let crashes = launch.home.address().map_or(0, |left_behind| left_behind.crashes + 1);
    let vault = Vault::new(launch.home.vault_dir(), KeySource::from_environment());
    let overrides = Arc::new(Overrides::new(vault.clone()));
    let models = models::open(launch, &overrides)?;
    let (bridge, intake) = bridge();
    let secrets = vault.clone();
    let front = front(launch, address, &models, crashes, bridge, vault);
    let accounts = providers::open(launch, &front, &front.providers, &front.in_force, overrides, &runtime);
    let keeper = models.keeper(&front.in_force, Arc::clone(&front.telling), &front.api);
    front.api.services.provide::<dyn agentsvc_api::model::catalog::Models>(Arc::new(keeper.clone()) as _);
    let (clustered, exchange) = exchange_of(launch, &front, Arc::clone(&accounts), runtime.handle())?;
    let snapshots = snapshots(launch, &front, &exchange);
    let live = Arc::new(Live::new(launch, &front, runtime.handle().clone()));
    front.api.services.provide::<dyn Configuration>(Arc::clone(&live) as _);
    front.open_domains(launch, &exchange)?;
    let tools = (&front.tools, &front.providers);
    crate::mcp::client::start(&front.api, tools, &launch.home, &front.vault, &exchange, runtime.handle());
    start_channels(launch, &front, &live, &exchange, runtime.handle());
    let data = launch.home.data_dir(config.data_dir.as_deref());
    crate::peer::start((config.network_enabled, &config.network), &front.tools, &front.api, &data, runtime.handle());
    let (files, handle) = (Arc::clone(&front.files), runtime.handle().clone());
    let readers = backups::Readers { live: Arc::clone(&live), accounts, keeper, files, handle };
    let backups = backups::open(launch, &front, &exchange, Arc::clone(&snapshots) as _, secrets, readers);
    let listeners = {
        let _inside = runtime.enter();
        let watched: std::io::Result<Vec<_>> = listeners.map(tokio::net::TcpListener::from_std).collect();
        watched.map_err(system("cannot watch the listener"))?
    };
    let served = runtime.spawn(agentsvc_api::serve(Arc::clone(&front.api), listeners));
    watch_signals(&runtime, front.api.shutdown.clone());
    live::hangup::watch(&runtime, live);
    launch.logging.tap(front.api.services.state());
    let _published = launch.home.publish(&Address::own(address, crashes), &launch.lock)?;
    tracing::info!(url = %Address::own(address, crashes).url(), "listening");
    let node = begin(launch, &front, &exchange, intake, clustered)?;
    front.settings.get::<RetentionClock>().watch(runtime.handle());
    snapshots.watch(runtime.handle());
    backups.watch();
    crate::kernel::start_code::hand_back(runtime.handle());
    greet(launch, &Address::own(address, crashes));
    runtime.block_on(front.api.shutdown.wait());
    tracing::info!("stopping");
    let stop = stop::Stop::begin(&front.api.bridge, &runtime);
    backups.stop();
    let _ended = runtime.block_on(served);
    stop.settle(&runtime);
    node.iter().for_each(Running::begin_stop);
    audit::note_stop(&front, &runtime);
    node.into_iter().for_each(Running::stop);
    exchange.stop();
    front.settings.get::<RetentionClock>().remember();
    runtime.shutdown_timeout(Duration::from_secs(2));
    match front.fatal.get() {
        Some(cause) => Err(Error::Fatal(cause.clone())),
        None => {
            tracing::info!("stopped");
            Ok(())
        }
    }
}

/// Says that the daemon is ready, and tells a person who watches where it is.
fn greet(launch: &Launch, address: &Address) {
    tracing::info!("ready");
    if launch.greets {
        let (chat, stop) = if launch.detached {
            ("run `agentsvc chat`", "`agentsvc stop`")
        } else {
            ("run `agentsvc chat` in another terminal", "Ctrl-C")
        };
        output::note(&format!(
            "{}{}/\nOpen it in a browser, or {chat}. {stop} stops the daemon.\nThe log is in {}; `agentsvc logs -f` follows it.",
            detach::RUNNING,
            address.url(),
            launch.home.logs_dir().display()
        ));
    }
    if launch.detached {
        detach::fall_silent();
    }
}

/// Starts the channels. What they change of the configuration is put in force.
fn start_channels(launch: &Launch, front: &ApiAdapter, live: &Arc<Live>, exchange: &Exchange, handle: &Handle) {
    let live = Arc::clone(live);
    let reload = move || live.reload(principal::actor()).map(drop).map_err(|error| error.to_string());
    crate::people::start(&front.api, &front.settings, exchange, handle);
    crate::channel::start((&front.api, &front.tools), &launch.home, exchange, reload, handle);
}

/// The front and what ends it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ApiAdapter {
    pub(crate) api: Arc<Api>,
    pub(crate) store: Arc<DeferredStore>,
    pub(crate) files: Arc<LocalFiles>,
    pub(crate) providers: Arc<ArcSwap<Providers>>,
    pub(crate) tools: ToolParts,
    pub(crate) vault: Vault,
    pub(crate) totp: Arc<Totp>,
    pub(crate) security: Arc<Systems>,
    /// What the configuration in force says to domains.
    pub(crate) settings: Settings,
    /// The configuration in force: the file's, save for what waits for a restart.
    pub(crate) in_force: Arc<ArcSwap<Config>>,
    /// Held while the world is given other settings, so that nobody gives it older ones.
    pub(crate) telling: Arc<tokio::sync::Mutex<()>>,
    /// Days after which audit entries go.
    pub(crate) audit_days: Arc<AtomicU32>,
    pub(crate) fatal: Arc<OnceLock<String>>,
}

pub(crate) fn front(
    launch: &Launch,
    listen: std::net::SocketAddr,
    models: &models::Models,
    crashes: u64,
    bridge: Bridge,
    vault: Vault,
) -> ApiAdapter {
    let config = &launch.config;
    let settings = ApiSettings {
        listen,
        api_key: config.api_key.expose().to_owned(),
        cors_origin: config.cors_origin.iter().map(|origin| origin.to_string()).collect(),
        rate_limit_per_second: config.rate_limit_per_second.get(),
        restart_count: crashes,
        build: Build::default(),
        limits: Limits {
            connections_max: crate::kernel::descriptors::connections_max(),
            loading_time_max: config.server.loading_wait(),
            ..Limits::default()
        },
    };
    let store = Arc::new(DeferredStore::default());
    let in_force_settings = Settings::default();
    config.put_in_force(&in_force_settings);
    let retention = RetentionClock::open(launch.home.clock_file(), Clock::system(), launch.first_run);
    in_force_settings.set(retention.clone());
    let workspaces = Workspaces::limited(launch.home.workspaces_dir(), in_force_settings.clone());
    let (dir, world) = (launch.home.uploads_dir(), bridge.clone());
    let files = Arc::new(LocalFiles::new(dir, config.uploads.clone(), workspaces, retention, world));
    let providers = Arc::clone(&models.providers);
    let parts = (bridge.clone(), files.workspaces().clone(), in_force_settings.clone());
    let tools = tools::tool_parts(launch, parts, &providers.load());
    tools.commands.keep_from((!config.api_key.is_set()).then_some(listen.port()));
    let totp = second_factor(launch, vault.clone());
    let api = Api::new(&DOMAINS, settings, bridge, Shutdown::new());
    let sandbox = tools::sandbox_in_force(config);
    let services = &api.services;
    services.provide::<dyn Files>(Arc::clone(&files) as _);
    services.provide(Arc::new(config.security.prompt_injection));
    services.provide(Arc::new(DefaultModel::from(&models.default)));
    services.provide(Arc::new(Installation {
        data_dir: launch.home.data_dir(config.data_dir.as_deref()).display().to_string(),
        config_warnings: launch.warnings.iter().map(ToString::to_string).collect(),
        sandbox: sandbox.clone(),
    }));
    api.add_probe(Arc::clone(&files) as _);
    services.provide::<dyn agentsvc_api::second_factor::factor::SecondFactor>(Arc::clone(&totp) as _);
    services.provide::<dyn Catalog>(Arc::new(ProviderCatalog(Arc::clone(&providers))));
    let security = Arc::new(Systems::of(config, sandbox));
    services.provide::<dyn SecuritySystems>(Arc::clone(&security) as _);
    let audit_days = Arc::new(config.audit.retention_days.into());
    let in_force = Arc::new(ArcSwap::from_pointee(config.clone()));
    let (settings, fatal, telling) = (in_force_settings, Arc::default(), Arc::default());
    ApiAdapter {
        api,
        store,
        files,
        providers,
        tools,
        vault,
        totp,
        security,
        settings,
        in_force,
        telling,
        audit_days,
        fatal,
    }
}

/// Lets clients take snapshots and restore them.
fn snapshots(launch: &Launch, front: &ApiAdapter, exchange: &Arc<Exchange>) -> Arc<Snapshots> {
    let data_dir = launch.config.data_dir.as_deref();
    let (dir, inputs) = (launch.home.snapshots_dir(data_dir), inputs::folder_of(&launch.home.data_dir(data_dir)));
    let paths = (inputs, launch.home.workspaces_dir());
    let snapshots = Arc::new(Snapshots::new(dir, paths, Arc::clone(exchange), front.settings.clone()));
    front.api.add_probe(snapshots.stats());
    front.api.services.provide::<dyn SnapshotService>(Arc::clone(&snapshots) as _);
    snapshots
}

/// The codes that approving may need, kept in the vault. A vault that does not open stops approving, not the daemon.
fn second_factor(launch: &Launch, vault: Vault) -> Arc<Totp> {
    let totp = Totp::new(vault, totp_settings(&launch.config), Clock::system());
    totp.announce();
    Arc::new(totp)
}

fn totp_settings(config: &Config) -> TotpSettings {
    let approval = &config.approval;
    TotpSettings {
        enforced: approval.second_factor == SecondFactor::Totp,
        grace: Duration::from_secs(approval.totp_grace_period_secs),
    }
}

impl ApiAdapter {
    /// Lets each domain give the API what it has.
    fn open_domains(&self, launch: &Launch, exchange: &Arc<Exchange>) -> Result<(), Error> {
        let opening = Opening {
            api: &self.api,
            home: &launch.home,
            data_dir: &launch.home.data_dir(launch.config.data_dir.as_deref()),
            settings: &self.settings,
            store: &self.store,
            workspaces: self.files.workspaces(),
            exchange,
            vault: &self.vault,
            web: &self.tools.web,
            commands: &self.tools.commands,
        };
        crate::DOMAINS
            .iter()
            .try_for_each(|domain| (domain.open)(&opening))
            .map_err(system("cannot start a part of the daemon"))
    }

    /// What takes another configuration while it runs.
    fn live_parts(&self, launch: &Launch) -> LiveParts {
        LiveParts {
            providers: Arc::clone(&self.providers),
            tools: self.tools.clone(),
            files: Arc::clone(&self.files),
            totp: Arc::clone(&self.totp),
            security: Arc::clone(&self.security),
            settings: self.settings.clone(),
            in_force: Arc::clone(&self.in_force),
            telling: Arc::clone(&self.telling),
            audit_days: Arc::clone(&self.audit_days),
            dial: launch.logging.dial.clone(),
        }
    }

    /// What ends the process with a cause. The first cause counts.
    fn fatal(&self) -> Arc<dyn Fn(String) + Send + Sync> {
        let (fatal, api) = (Arc::clone(&self.fatal), Arc::clone(&self.api));
        Arc::new(move |cause| {
            tracing::error!(%cause, "the daemon cannot continue");
            api.health.set_store_up(false);
            let _first = fatal.set(cause);
            api.shutdown.trigger();
        })
    }
}

/// SIGINT and SIGTERM stop the daemon in order; a second one at once.
fn watch_signals(runtime: &Runtime, shutdown: Shutdown) {
    runtime.spawn(async move {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return tracing::warn!("cannot listen for signals; stop the daemon with `agentsvc stop`");
        };
        for asked_before in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if asked_before {
                tracing::warn!("second stop signal: exiting immediately; the next start resumes from the stored state");
                std::process::exit(130);
            }
            shutdown.trigger();
        }
    });
}
