//! Finds entries of the memory of agents by the words of a query, and by vectors (spec 2, Memory).
//!
//! | part | what it does |
//! |---|---|
//! | [`analysis`] | makes terms of texts in any language |
//! | [`rank`] | BM25, and the joining of rankings |
//! | [`embed`] | makes vectors of texts |
//! | [`search`] | reads and ranks the rows where they are few, and asks the index where they are many |
//! | [`index`], [`segment`], [`tail`] | the index: files of postings, and what is in none yet |
//! | [`worker`] | the thread that keeps the index up to date, or builds it anew |
//! | [`progress`] | what the threads share, and how far they have come |
//! | [`merger`] | the thread that writes and merges files of it |
//!
//! The index is derived from the rows: it has a folder of its own beside the store, may be deleted at any time, and is built
//! again while the daemon serves. There is none, and no thread, before there are more rows than a search would read; then they
//! start with the daemon, or with the first search that has so many to look at.

mod analysis;
pub mod config;
mod embed;
mod index;
mod merger;
mod progress;
#[cfg(test)]
mod quality;
mod rank;
mod search;
mod search_parts;
mod segment;
mod stop_words;
mod tail;
#[cfg(test)]
mod testing;
mod worker;
mod world;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use agentsvc_api::http::bridge::Bridge;
use agentsvc_api::http::metrics::{MetricsText, Probe};
use agentsvc_api::proactive_memory::search::MemorySearch;
use agentsvc_api::proactive_memory::store::EntryStore;
use agentsvc_components::proactive_memory::change::EntriesChanged;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::kernel::domain::{Domain, Opening};
use crate::kernel::effect::performers::Performers;
use crate::kernel::settings::Settings;
use crate::kernel::world_loop::Clock;
use crate::model::provider::Providers;
use crate::tool::toolset::ToolParts;
use config::MemoryConfig;
use embed::{Configured, Parts, RemoteEmbedder, RemoteParts, Similar, Stored};
use search::MemoryIndex;
use worker::Worker;
use world::Present;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "memory_index",
    uses: &["agent", "budget", "manifest", "model", "proactive_memory", "prompt", "session", "tool", "turn", "usage"],
    performers,
    open,
    ..Domain::EMPTY
};

/// The folder of the index beside the store.
const FOLDER: &str = "memory-index";
/// The folder of the vectors that a provider made.
const VECTORS_FOLDER: &str = "memory-vectors";

/// The index, for those who tell it of changes.
#[derive(Default)]
struct Shared(Option<Arc<MemoryIndex>>);

/// How models are asked.
#[derive(Default)]
struct Models(Option<(Arc<ArcSwap<Providers>>, Handle)>);

/// What makes vectors, opened by who first needs it.
struct Vectors {
    settings: Settings,
    entries: Arc<dyn EntryStore>,
    bridge: Bridge,
    root: PathBuf,
    starts: watch::Receiver<()>,
    opened: OnceLock<Option<Arc<dyn Similar>>>,
}

fn open(opening: &Opening<'_>) -> std::io::Result<()> {
    let entries: Arc<dyn EntryStore> = Arc::clone(opening.store) as _;
    let world = Present {
        bridge: opening.api.bridge.clone(),
        starts: Mutex::new(opening.exchange.starts()),
        clock: Clock::system(),
    };
    let worker = Worker::new(Arc::clone(&entries), opening.data_dir.join(FOLDER));
    let vectors = Vectors {
        settings: opening.settings.clone(),
        entries: Arc::clone(&entries),
        bridge: opening.api.bridge.clone(),
        root: opening.data_dir.join(VECTORS_FOLDER),
        starts: opening.exchange.starts(),
        opened: OnceLock::new(),
    };
    let vectors = Box::new(move || vectors.get());
    let index = Arc::new(MemoryIndex { entries, world: Arc::new(world), worker, vectors });
    opening.settings.set(Shared(Some(Arc::clone(&index))));
    opening.api.add_probe(Arc::clone(&index) as _);
    opening.provide::<dyn MemorySearch>(index);
    begin(opening.settings);
    open_model(opening.settings);
    Ok(())
}

impl Vectors {
    /// What makes vectors as the configuration says it. A model on this machine is opened once; what asks a
    /// provider begins as soon as there is a way to it.
    fn get(&self) -> Option<Arc<dyn Similar>> {
        let config = self.settings.get::<MemoryConfig>();
        let local = || config.vectors().map(|vectors| Arc::new(vectors) as Arc<dyn Similar>);
        let Some(remote) = config.remote() else { return self.opened.get_or_init(local).clone() };
        let models = self.settings.get::<Models>();
        let (providers, handle) = models.0.as_ref()?;
        let started = || {
            let parts = RemoteParts { providers: Arc::clone(providers), bridge: self.bridge.clone() };
            let embedder = RemoteEmbedder::new(Box::new(Configured::new(remote.clone(), parts)), handle.clone());
            let mut starts = self.starts.clone();
            let is_another = Box::new(move || {
                let is_another = starts.has_changed().unwrap_or(false);
                starts.mark_unchanged();
                is_another
            });
            let parts = Parts { entries: Arc::clone(&self.entries), root: self.root.clone(), is_another };
            let failed = |error: &std::io::Error| tracing::error!(%error, "the thread of vectors could not be started");
            let stored = Stored::start(&remote, embedder, parts).inspect_err(failed).ok();
            stored.map(|stored| stored as Arc<dyn Similar>)
        };
        self.opened.get_or_init(started).clone()
    }
}

/// Begins to ask a provider, where one is configured. Called from both sides of what that needs.
fn begin(settings: &Settings) {
    if let Some(index) = &settings.get::<Shared>().0
        && settings.get::<MemoryConfig>().remote().is_some()
    {
        let _started = (index.vectors)();
    }
}

/// Opens the model on this machine, where there is one: turns that search would wait for it.
fn open_model(settings: &Settings) {
    let index = settings.get::<Shared>().0.clone();
    let Some(index) = index.filter(|_| settings.get::<MemoryConfig>().has_local_model()) else { return };
    let opened = std::thread::Builder::new().name("memory-model".to_owned()).spawn(move || drop((index.vectors)()));
    if let Err(error) = opened {
        tracing::warn!(%error, "the embedding model is opened by the first search");
    }
}

fn performers(performers: &mut Performers) {
    let ToolParts { settings, .. } = performers.part();
    settings.set(Models(Some((performers.part(), performers.calls().handle.clone()))));
    begin(&settings);
    // The world comes to life: its store is open.
    if let Some(index) = &settings.get::<Shared>().0 {
        index.begin();
    }
    performers.on(move |changed: Box<EntriesChanged>| tell(&settings, &changed));
}

fn tell(settings: &Settings, changed: &EntriesChanged) {
    if let Some(index) = &settings.get::<Shared>().0 {
        index.worker.tell(changed);
        if settings.get::<MemoryConfig>().remote().is_some()
            && let Some(vectors) = (index.vectors)()
        {
            vectors.tell(changed);
        }
    }
}

impl Probe for MemoryIndex {
    fn gather(&self, out: &mut MetricsText) {
        let (entries, bytes) = self.worker.size();
        let help =
            "Memory entries in the search index, including earlier versions and deleted ones that are not yet removed.";
        out.gauge("agentsvc_memory_index_entries", help, entries);
        out.gauge("agentsvc_memory_index_bytes", "Bytes of the files of the search index of memory entries.", bytes);
    }
}
