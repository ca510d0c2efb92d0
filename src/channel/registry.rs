//! The channels that run, kept the same as what the configuration wants.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry::Vacant;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use agentsvc_api::Api;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::config::ConfiguredChannels;
use super::definition::{Definition, Sources};
use super::describe::Described;
use super::instance::{Instance, Start};
use super::secrets::SecretsFile;
use super::show::ShownAnswers;
use super::web_chat::{ConfiguredSites, SiteBook};
use crate::kernel::egress::Web;
use crate::kernel::logging::known_secrets;
use crate::kernel::sandbox::Commands;
use crate::kernel::settings::Settings;

/// Time that a stop of all adapters may take.
const STOP_WAIT: Duration = Duration::from_secs(8);

/// Reads the configuration again and puts it in force; gives why it cannot.
pub(super) type Reload = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Runs channels.
pub(crate) struct Registry {
    pub(super) api: Arc<Api>,
    pub(super) commands: Commands,
    pub(super) web: Web,
    pub(super) settings: Settings,
    pub(super) home: PathBuf,
    pub(super) secrets: SecretsFile,
    pub(super) described: Described,
    pub(super) shown: ShownAnswers,
    pub(super) reload: Reload,
    /// The sites of web chats.
    pub(super) sites: Arc<SiteBook>,
    handle: Handle,
    /// The world is to be told of the rules again.
    rules: Arc<Notify>,
    running: Mutex<BTreeMap<Box<str>, Running>>,
    /// One change at a time.
    turn: tokio::sync::Mutex<()>,
    /// The daemon answers: from here on programs may compete with it.
    may_start: watch::Sender<bool>,
}

/// The registry as performers find it in the settings.
#[derive(Clone, Default)]
pub(super) struct Current(pub(super) Weak<Registry>);

struct Running {
    instance: Arc<Instance>,
    /// Until it is waited for elsewhere.
    task: Option<JoinHandle<()>>,
    pump: Option<JoinHandle<()>>,
    /// Its end lets the pump bring what has come, and end.
    _closing: oneshot::Sender<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.instance.stop();
    }
}

/// Waits until the world is given up to another node.
async fn until(is_given_away: &mut watch::Receiver<bool>) {
    if is_given_away.wait_for(|is| *is).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// What a change did.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub(crate) started: Vec<String>,
    pub(crate) stopped: Vec<String>,
}

/// What a registry needs of the daemon.
pub(crate) struct Parts {
    pub(crate) api: Arc<Api>,
    pub(crate) commands: Commands,
    pub(crate) web: Web,
    pub(crate) settings: Settings,
    pub(crate) home: PathBuf,
    pub(crate) reload: Reload,
    pub(crate) handle: Handle,
}

impl Registry {
    /// Nothing runs yet.
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        let Parts { api, commands, web, settings, home, reload, handle } = parts;
        Arc::new(Self {
            api,
            commands,
            web,
            settings,
            secrets: SecretsFile::new(&home),
            home,
            described: Described::default(),
            shown: ShownAnswers::default(),
            reload,
            sites: Arc::default(),
            handle,
            rules: Arc::default(),
            running: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            may_start: watch::Sender::default(),
        })
    }

    /// Follows the configuration and the worlds, until the daemon stops.
    pub(crate) async fn follow(
        self: Arc<Self>,
        (mut starts, mut is_given_away): (watch::Receiver<()>, watch::Receiver<bool>),
    ) {
        let mut changes = self.settings.changes();
        let mut was_given_away = false;
        self.apply().await;
        loop {
            tokio::select! {
                Ok(()) = changes.changed() => drop(self.apply().await),
                // Both may have come to pass meanwhile: what holds now counts, whichever is heard of first.
                Ok(()) = is_given_away.changed() => {
                    if !*is_given_away.borrow() {
                        continue;
                    }
                    // The adapters of the node that owns the world from here on take the messages.
                    self.may_start.send_replace(false);
                    let _one_by_one = self.turn.lock().await;
                    self.exchange(BTreeMap::new());
                    was_given_away = true;
                }
                Ok(()) = starts.changed() => {
                    if *is_given_away.borrow() {
                        continue;
                    }
                    if std::mem::take(&mut was_given_away) {
                        self.apply().await;
                    }
                    let mut given_away = is_given_away.clone();
                    // It must know a channel before messages come; a world that is another node's by now is not told.
                    tokio::select! {
                        () = self.tell() => {}
                        () = until(&mut given_away) => continue,
                    }
                    self.may_start.send_replace(true);
                    self.carry_out_pending().await;
                }
                () = self.rules.notified() => self.tell().await,
                () = self.api.shutdown.wait() => return self.stop_all().await,
            }
        }
    }

    async fn stop_all(&self) {
        let running = std::mem::take(&mut *self.running.lock());
        let tasks = running.into_values().flat_map(|mut entry| [entry.task.take(), entry.pump.take()]);
        let tasks: Vec<_> = tasks.flatten().collect();
        let _in_time = timeout(STOP_WAIT, futures_util::future::join_all(tasks)).await;
    }

    /// Makes what runs the same as what is wanted.
    pub(super) async fn apply(self: &Arc<Self>) -> Changed {
        let _one_by_one = self.turn.lock().await;
        let of = Arc::clone(self);
        let Ok(wanted) = tokio::task::spawn_blocking(move || of.wanted()).await else { return Changed::default() };
        let changed = self.exchange(wanted);
        if *self.may_start.borrow() {
            self.tell().await;
        }
        changed
    }

    /// Stops what is not wanted any more, and starts what is new.
    fn exchange(self: &Arc<Self>, wanted: BTreeMap<Box<str>, Definition>) -> Changed {
        let mut changed = Changed::default();
        let mut running = self.running.lock();
        let mut ending = BTreeMap::new();
        running.retain(|name, entry| {
            let stays = wanted.get(name).is_some_and(|it| *it == entry.instance.definition);
            if !stays {
                if !wanted.contains_key(name) {
                    changed.stopped.push(name.to_string());
                }
                ending.extend(entry.task.take().map(|task| (name.clone(), task)));
            }
            stays
        });
        for (name, definition) in wanted {
            if let Vacant(place) = running.entry(name) {
                changed.started.push(place.key().to_string());
                let before = ending.remove(place.key());
                place.insert(self.start(definition, before));
            }
        }
        changed
    }

    /// Tells the world of the rules; then pages of sites may call.
    async fn tell(&self) {
        self.tell_world().await;
        self.sites.open(&self.api);
    }

    /// The channels that there should be; the sites are taken over. Blocks on the disk.
    fn wanted(&self) -> BTreeMap<Box<str>, Definition> {
        self.sites.apply(&self.settings.get::<ConfiguredSites>(), &self.home);
        let configured = self.settings.get::<ConfiguredChannels>();
        configured.0.iter().map(|(name, config)| (name.clone(), self.definition(name, config))).collect()
    }

    /// The channel as it is to run. Blocks on the disk.
    pub(super) fn definition(&self, name: &str, config: &Arc<super::config::SidecarChannel>) -> Definition {
        let secrets = self.secrets.read().unwrap_or_else(|error| {
            tracing::warn!(%error, "secrets.env cannot be read");
            super::secrets::Secrets::default()
        });
        let variable = |key: &str| std::env::var(key).ok();
        let is_daemons = |key: &str| self.is_daemons(key);
        let sources = Sources { home: &self.home, secrets: &secrets, variable: &variable, is_daemons: &is_daemons };
        Definition::new(name, config, &sources)
    }

    /// Starts a channel once its process of `before` has ended: platforms take one at a time.
    fn start(self: &Arc<Self>, definition: Definition, before: Option<JoinHandle<()>>) -> Running {
        definition.secrets().for_each(|secret| known_secrets().add(secret));
        let (instance, messages) = Instance::new(definition, Arc::clone(&self.rules));
        let (kept, of) = (Arc::clone(&instance), Arc::downgrade(self));
        let mut may_start = self.may_start.subscribe();
        let task = self.handle.spawn(async move {
            if let Some(before) = before {
                let _ended = before.await;
            }
            let _registry_is_gone = may_start.wait_for(|may_start| *may_start).await.is_err();
            let start = || -> Start {
                let (of, instance) = (of.clone(), Arc::clone(&kept));
                Box::pin(async move {
                    let Some(registry) = of.upgrade() else { return Err("the daemon stops".to_owned()) };
                    registry.launch(&instance).await
                })
            };
            Arc::clone(&kept).keep(start).await;
        });
        let (closing, closed) = oneshot::channel();
        let pump = super::inbound::pump(Arc::downgrade(self), Arc::clone(&instance), messages, closed);
        let pump = Some(self.handle.spawn(pump));
        Running { instance, task: Some(task), pump, _closing: closing }
    }

    /// Is a key the daemon's own: of a provider, of hooks, of sign-ins? What an adapter says of itself gives it none of them.
    fn is_daemons(&self, key: &str) -> bool {
        key.starts_with("AGENTSVC_") || key.ends_with("_API_KEY") || self.commands.is_secret(key)
    }

    /// Starts the program of a channel.
    async fn launch(&self, instance: &Instance) -> Result<crate::kernel::sandbox::Server, String> {
        let definition = &instance.definition;
        let mut program = definition.program(&[]);
        // An adapter of the SDK says which values it takes; others would run as bots if they were asked.
        if definition.adapter().is_some()
            && let Ok(schema) = self.described.ask(definition, &self.commands).await
        {
            let withheld =
                schema.fields.iter().map(|field| field.key.as_str()).filter(|key| definition.withheld.contains(*key));
            let withheld: Vec<&str> = withheld.collect();
            if !withheld.is_empty() {
                let keys = withheld.join(", ");
                let text = "an adapter asks for keys of secrets.env that do not begin with its name; where it needs them, list \
                            them in env_passthrough";
                tracing::warn!(channel = instance.name(), keys, "{text}");
            }
            for field in &schema.fields {
                let value = definition.offered.get(&field.key);
                program.environment.extend(value.map(|value| (field.key.clone(), value.expose().into())));
            }
        }
        self.commands.serve(program).await.map_err(|why| why.trim_end_matches('.').to_owned())
    }

    /// Carries something out beside all else.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(work));
    }

    /// Those that run, by name.
    pub(super) fn instances(&self) -> Vec<Arc<Instance>> {
        self.running.lock().values().map(|entry| Arc::clone(&entry.instance)).collect()
    }

    /// The one of this name.
    pub(super) fn instance(&self, name: &str) -> Option<Arc<Instance>> {
        self.running.lock().get(name).map(|entry| Arc::clone(&entry.instance))
    }
}
