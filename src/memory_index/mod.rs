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
//!
//! The index is derived from the rows: it has a folder of its own beside the store, may be deleted at any time, and is built
//! again while the daemon serves. There is none, and no thread, before a search has more rows to look at than it would read.

mod analysis;
pub mod config;
mod embed;
mod index;
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

use std::sync::{Arc, OnceLock};

use agentsvc_api::http::metrics::{MetricsText, Probe};
use agentsvc_api::proactive_memory::search::MemorySearch;
use agentsvc_api::proactive_memory::store::EntryStore;
use agentsvc_components::proactive_memory::change::EntriesChanged;
use parking_lot::Mutex;

use crate::kernel::domain::{Domain, Opening};
use crate::kernel::effect::performers::Performers;
use crate::kernel::settings::Settings;
use crate::kernel::world_loop::Clock;
use crate::tool::toolset::ToolParts;
use config::MemoryConfig;
use embed::Vectors;
use search::MemoryIndex;
use worker::Worker;
use world::Present;

/// What this domain brings.
pub const DOMAIN: Domain =
    Domain { name: "memory_index", uses: &["agent", "proactive_memory", "tool"], performers, open, ..Domain::EMPTY };

/// The folder of the index beside the store.
const FOLDER: &str = "memory-index";

/// The index, for those who tell it of changes.
#[derive(Default)]
struct Shared(Option<Arc<MemoryIndex>>);

fn open(opening: &Opening<'_>) -> std::io::Result<()> {
    let entries: Arc<dyn EntryStore> = Arc::clone(opening.store) as _;
    let world = Present {
        bridge: opening.api.bridge.clone(),
        starts: Mutex::new(opening.exchange.starts()),
        clock: Clock::system(),
    };
    let worker = Worker::new(Arc::clone(&entries), opening.data_dir.join(FOLDER));
    let index = Arc::new(MemoryIndex { entries, world: Arc::new(world), worker, vectors: vectors(opening.settings) });
    opening.settings.set(Shared(Some(Arc::clone(&index))));
    opening.api.add_probe(Arc::clone(&index) as _);
    opening.provide::<dyn MemorySearch>(index);
    Ok(())
}

/// What makes vectors as the configuration says it. A model is opened by the first search.
fn vectors(settings: &Settings) -> Box<dyn Fn() -> Option<Arc<Vectors>> + Send + Sync> {
    let (settings, opened) = (settings.clone(), OnceLock::new());
    Box::new(move || opened.get_or_init(|| settings.get::<MemoryConfig>().vectors().map(Arc::new)).clone())
}

fn performers(performers: &mut Performers) {
    let ToolParts { settings, .. } = performers.part();
    performers.on(move |changed: Box<EntriesChanged>| tell(&settings, &changed));
}

fn tell(settings: &Settings, changed: &EntriesChanged) {
    if let Some(index) = &settings.get::<Shared>().0 {
        index.worker.tell(changed);
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
