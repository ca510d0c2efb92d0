//! Plugins of the context engine (spec 2, Plugins): programs that bring memories to turns, change what models read, and hear of
//! turns that have ended.
//!
//! ```text
//! manifest.rs   plugin.toml                      library.rs   the folders of plugins
//! process.rs    processes of hooks               run.rs       one call: schemas, memo, tries, circuit breaker
//! engine.rs     what they do in turns            told.rs      what they are told behind turns
//! ```
//!
//! | rule | why |
//! |---|---|
//! | hooks run where models are called, never in the world | a slow plugin holds up its own turns only |
//! | each runs in the sandbox of servers: its folder to read, a private `HOME` to change | it outlives a kill, and reaches nothing else |
//! | what it brings is untrusted content | its author is not the operator |
//! | an answer that breaks a conversation is not used | providers refuse a tool call without its result |

mod cli;
pub mod config;
mod conversation;
mod engine;
mod fault;
mod health;
mod hook;
mod install;
mod keys;
mod library;
mod lint;
mod machine;
mod manifest;
mod memo;
#[allow(clippy::module_inception, reason = "the domain is named after what it holds")]
mod plugin;
mod process;
mod program;
mod run;
mod runtime;
mod scaffold;
mod service;
mod shape;
mod signature;
mod signing;
mod told;
mod turns;
mod waiting;

use std::io;
use std::sync::Arc;
use std::thread;

use agentsvc_api::plugin::plugins::Plugins as PluginService;
use agentsvc_components::event::EventEnvelope;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::{Domain, Opening};
use engine::Engine;
use library::Library;
use service::Service;
use told::Teller;
pub(crate) use turns::Compacted;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "plugin",
    uses: &["event", "proactive_memory", "session", "skill", "skill_scan", "skill_source", "tool", "turn"],
    commands: &[Subcommand::group::<cli::PluginCommand>(32, "plugin", "Install, check and control plugins")
        .headed(&[
            ("Find and install", &["list", "search", "info", "install", "upgrade", "deps", "remove"]),
            ("Run", &["enable", "disable", "reload", "health", "traces", "doctor"]),
            ("Write your own", &["new", "lint", "test", "sign"]),
        ])
        .examples(&[
            Example::new("plugin search", "List the plugins of the registries"),
            Example::new("plugin install ./notes", "Install one from a folder"),
            Example::new("plugin new notes --runtime python", "Write your own"),
        ])
        .under(Group::Abilities)],
    open,
    ..Domain::EMPTY
};

/// The plugins of the daemon. Copies share them; the default has none.
#[derive(Clone, Default)]
pub(crate) struct Plugins(Option<Parts>);

#[derive(Clone)]
struct Parts {
    engine: Arc<Engine>,
    teller: Arc<Teller>,
}

impl Plugins {
    /// Something happened and is durable. Never waits.
    pub(crate) fn note(&self, happened: &EventEnvelope) {
        if let Some(Parts { engine, teller }) = self.0.as_ref().filter(|parts| parts.engine.is_used()) {
            teller.note(engine, happened);
        }
    }
}

/// Reads the plugins in the background: a start does not wait for them.
fn open(opening: &Opening<'_>) -> io::Result<()> {
    let (settings, vault) = (opening.settings.clone(), opening.vault.clone());
    let library = Library::new(opening.home.root(), opening.data_dir, settings.clone(), vault.clone());
    let means = (opening.commands.clone(), settings.clone(), vault);
    let engine = Engine::new(means, Arc::clone(&library), Arc::clone(opening.store) as _, opening.data_dir);
    let teller = Arc::new(Teller::default());
    settings.set(Plugins(Some(Parts { engine: Arc::clone(&engine), teller: Arc::clone(&teller) })));
    settings.set(turns::transform(&engine));
    let scratch = opening.data_dir.join("plugins/.doctor");
    let service = Arc::new(Service::new(Arc::clone(&engine), Arc::clone(&teller), scratch));
    opening.provide::<dyn PluginService>(service);
    teller.start(engine, opening.api.shutdown.clone())?;
    let read = move || {
        let leftovers = library.folders.leftovers();
        library.read_all();
        match leftovers {
            Ok(leftovers) => leftovers.remove(),
            Err(error) => tracing::warn!(%error, "what is left of installations of plugins cannot be removed"),
        }
        teller.changed();
    };
    thread::Builder::new().name("plugins".to_owned()).spawn(read).map(drop)
}
