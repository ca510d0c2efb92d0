//! The servers that run: those of the configuration and those that clients stored, kept the same as what is wanted.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry::Vacant;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agentsvc_api::Api;
use agentsvc_components::mcp::McpServer;
use agentsvc_systems::injection::InjectionPolicy;
use agentsvc_systems::kernel::entities::List;
use agentsvc_systems::mcp::limits::MCP_SERVERS_MAX;
use agentsvc_systems::mcp::{McpServerView, tool_prefix};
use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use super::asks::sampler::Sampler;
use super::config::Configured;
use super::definition::{Definition, Sources};
use super::gather::Gather;
use super::pins;
use super::server::Server;
use super::tools;
use super::wire::Means;
use crate::kernel::config::Secret;
use crate::kernel::logging::known_secrets;
use crate::kernel::sandbox::config::ExecPolicy;
use crate::kernel::settings::Settings;
use crate::kernel::vault::Vault;
use crate::mcp::catalog::Catalog;
use crate::tool::toolset::ToolSet;

/// The name under which values of servers are sealed.
const SEALED_AS: &str = "mcp";
/// Time until the world is asked again for its servers when it does not answer.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How often it is asked before a change is applied without its answer.
const ASKS_MAX: u32 = 5;

/// Runs servers.
pub(crate) struct Registry {
    pub(super) means: Means,
    pub(super) catalog: Catalog,
    pub(super) vault: Vault,
    pub(super) api: Arc<Api>,
    set: ToolSet,
    settings: Settings,
    handle: Handle,
    /// What becomes of texts that look like prompt injections.
    pub(super) injection: InjectionPolicy,
    /// Where each has a directory of its own.
    directories: PathBuf,
    /// Asks models on their behalf.
    sampler: Arc<Sampler>,
    running: Mutex<BTreeMap<Box<str>, Entry>>,
    /// The servers that the world had when it was last asked.
    stored: Mutex<Vec<McpServer>>,
    /// The world has told of them, and they are started.
    is_known: AtomicBool,
    /// The daemon answers: from here on programs may compete with it.
    may_start: watch::Sender<bool>,
    /// One change at a time.
    turn: tokio::sync::Mutex<()>,
    /// A change was applied without the answer of the world.
    unanswered: Notify,
    /// Two servers that change at once must not offer an older list last.
    offering: Mutex<tools::Made>,
    /// The servers whose tools have changed wait for one list of all.
    pub(super) gather: Gather,
}

struct Entry {
    server: Arc<Server>,
    task: AbortHandle,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a registry needs of the daemon.
pub(crate) struct Parts {
    pub(crate) means: Means,
    pub(crate) catalog: Catalog,
    pub(crate) vault: Vault,
    pub(crate) api: Arc<Api>,
    pub(crate) set: ToolSet,
    pub(crate) settings: Settings,
    pub(crate) handle: Handle,
    pub(crate) injection: InjectionPolicy,
    pub(crate) directories: PathBuf,
    pub(crate) sampler: Arc<Sampler>,
}

impl Registry {
    /// Nothing runs yet.
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        let Parts { means, catalog, vault, api, set, settings, handle, injection, directories, sampler } = parts;
        Arc::new(Self {
            means,
            catalog,
            vault,
            api,
            set,
            settings,
            handle,
            injection,
            directories,
            sampler,
            running: Mutex::default(),
            stored: Mutex::default(),
            is_known: AtomicBool::default(),
            may_start: watch::Sender::default(),
            turn: tokio::sync::Mutex::default(),
            unanswered: Notify::new(),
            offering: Mutex::default(),
            gather: Gather::default(),
        })
    }

    /// Follows the configuration and the world, for ever.
    pub(crate) async fn follow(self: Arc<Self>, mut starts: watch::Receiver<()>) {
        let mut changes = self.settings.changes();
        // Those of the configuration need no world.
        self.apply(&self.turn.lock().await).await;
        loop {
            tokio::select! {
                Ok(()) = changes.changed() => {
                    self.resync().await;
                    self.settle_all();
                }
                Ok(()) = starts.changed() => {
                    self.may_start.send_replace(true);
                    // A restore may have brought other ones.
                    self.servers().iter().filter_map(|server| server.sign_in().cloned()).for_each(|it| it.forget_read());
                    self.ask_and_apply_until_answered().await;
                    self.is_known.store(true, Ordering::Relaxed);
                    self.expect();
                    self.settle_all();
                }
                () = self.unanswered.notified() => self.ask_and_apply_until_answered().await,
            }
        }
    }

    async fn ask_and_apply_until_answered(self: &Arc<Self>) {
        while self.ask_and_apply().await.is_none() {
            tokio::time::sleep(ASK_AGAIN_AFTER).await;
        }
    }

    /// Asks the world for its servers. False when it does not answer.
    async fn ask(&self) -> bool {
        let list = List::<McpServerView> { filter: (), after: None, limit: MCP_SERVERS_MAX };
        // One world: what another one accepted must not be forgotten because of the servers of this one.
        let bridge = self.api.bridge.of_this_world();
        match bridge.ask(list).await {
            Ok(page) => {
                *self.stored.lock() = page.items.into_iter().map(|view| view.server).collect();
                let configured = self.settings.get::<Configured>();
                let is_there = |name: &str| {
                    configured.0.contains_key(name) || self.stored.lock().iter().any(|server| &*server.name == name)
                };
                pins::forget_others(&bridge, is_there).await;
                true
            }
            Err(refusal) => {
                tracing::debug!(%refusal, "the stored MCP servers are not known yet");
                false
            }
        }
    }

    /// As [`apply`](Self::apply), with the servers that the world has now. When it does not answer within a second, with those
    /// that it had, until it does.
    pub(super) async fn resync(self: &Arc<Self>) -> Vec<Arc<Server>> {
        for _ in 0..ASKS_MAX {
            if let Some(started) = self.ask_and_apply().await {
                return started;
            }
            tokio::time::sleep(ASK_AGAIN_AFTER).await;
        }
        if self.api.bridge.is_open() {
            tracing::warn!("the daemon is too busy to read the stored MCP servers; they are read again");
        } else {
            tracing::info!("no world runs here: the stored MCP servers are read when one does");
        }
        self.unanswered.notify_one();
        self.apply(&self.turn.lock().await).await
    }

    /// As [`apply`](Self::apply), with the servers that the world has now. `None` when it does not answer. An older list must not
    /// be applied after a newer one: no other one is asked for meanwhile.
    async fn ask_and_apply(self: &Arc<Self>) -> Option<Vec<Arc<Server>>> {
        let turn = self.turn.lock().await;
        if self.ask().await { Some(self.apply(&turn).await) } else { None }
    }

    /// Makes what runs the same as what is wanted. Gives the servers that were started.
    async fn apply(self: &Arc<Self>, _one_by_one: &tokio::sync::MutexGuard<'_, ()>) -> Vec<Arc<Server>> {
        let of = Arc::clone(self);
        let Ok(wanted) = tokio::task::spawn_blocking(move || of.wanted()).await else { return Vec::new() };
        for secret in wanted.values().flat_map(Definition::secrets) {
            known_secrets().add(secret);
        }
        let mut started = Vec::new();
        {
            let mut running = self.running.lock();
            running.retain(|name, entry| wanted.get(name).is_some_and(|it| it == entry.server.definition()));
            for (name, definition) in wanted {
                if let Vacant(place) = running.entry(name) {
                    let entry = self.start(definition);
                    started.push(Arc::clone(&entry.server));
                    place.insert(entry);
                }
            }
        }
        self.offer();
        started
    }

    /// The servers that there should be. Blocks on the disk.
    fn wanted(&self) -> BTreeMap<Box<str>, Definition> {
        let unseal = |sealed: &str| {
            let opened = self.vault.unseal(SEALED_AS, sealed).map_err(|error| error.to_string())?;
            std::str::from_utf8(&opened).map(Secret::new).map_err(|error| error.to_string())
        };
        let variable = |name: &str| std::env::var(name).ok();
        let mode = self.settings.get::<ExecPolicy>().mode;
        let sources = Sources { catalog: &self.catalog, variable: &variable, unseal: &unseal, mode };
        let configured = self.settings.get::<Configured>();
        let mut wanted: BTreeMap<Box<str>, Definition> =
            configured.0.iter().map(|(name, config)| (name.clone(), sources.configured(name, config))).collect();
        let prefixes: Vec<String> = wanted.keys().map(|name| tool_prefix(name)).collect();
        for server in self.stored.lock().iter() {
            if prefixes.contains(&tool_prefix(&server.name)) {
                tracing::warn!(server = &*server.name, "config.toml has an MCP server of this name, which is used");
            } else {
                wanted.insert(server.name.clone(), sources.stored(server));
            }
        }
        wanted
    }

    fn start(self: &Arc<Self>, definition: Definition) -> Entry {
        let sign_in = self.sign_in(&definition);
        let server = Arc::new(Server::new(definition, &self.directories, sign_in, self.settings.clone()));
        let (kept, means) = (Arc::clone(&server), self.means.clone());
        let (of, listed) = (Arc::downgrade(self), Arc::clone(&server));
        let offer = move |tools| {
            let (of, listed) = (of.upgrade(), Arc::clone(&listed));
            let take = async move {
                if let Some(registry) = of {
                    registry.take_list(&listed, tools).await;
                }
            };
            take.boxed()
        };
        let mut attempts = server.attempts();
        let mut may_start = self.may_start.subscribe();
        let keep = async move {
            let _registry_is_gone = may_start.wait_for(|may_start| *may_start).await.is_err();
            kept.keep(|| kept.open(&means), offer).await;
        };
        let task = self.handle.spawn(keep).abort_handle();
        let of = Arc::downgrade(self);
        drop(self.handle.spawn(async move {
            // Also when it is removed before.
            let _over = attempts.changed().await;
            if let Some(registry) = of.upgrade() {
                registry.expect();
            }
        }));
        Entry { server, task }
    }

    /// Lets calls wait for tools of servers that are started for the first time.
    fn expect(&self) {
        let _one_by_one = self.offering.lock();
        // Before the world has told of its servers, any tool may come.
        if self.is_known.load(Ordering::Relaxed) {
            let new = self.servers().into_iter().filter(|server| server.is_new());
            self.set.expect("mcp", new.map(|server| tool_prefix(server.name())).collect());
        }
    }

    /// Offers the tools of all servers to agents.
    pub(super) fn offer(&self) {
        let mut made = self.offering.lock();
        let servers = self.servers();
        self.set.bring("mcp", tools::all(&servers, &self.sampler, &mut made));
    }

    /// Those that run, in the order of their names.
    pub(super) fn servers(&self) -> Vec<Arc<Server>> {
        self.running.lock().values().map(|entry| Arc::clone(&entry.server)).collect()
    }

    /// The one of this name.
    pub(super) fn server(&self, name: &str) -> Option<Arc<Server>> {
        self.running.lock().get(name).map(|entry| Arc::clone(&entry.server))
    }

    /// The catalog entries that servers were made from.
    pub(super) fn installed(&self) -> Vec<Box<str>> {
        self.servers().iter().filter_map(|server| server.definition().template_id.clone()).collect()
    }

    /// Seals a value of a server. Blocks on the disk.
    ///
    /// # Errors
    /// Why the vault cannot be used.
    pub(super) fn seal_value(&self, value: &str) -> Result<String, String> {
        self.vault.seal(SEALED_AS, value.as_bytes()).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
