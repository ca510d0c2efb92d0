//! `{home}/config.toml`: the tables of all domains, joined, and what concerns several of them.

pub(crate) mod cli;
mod models;
mod settings;
mod view;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::approval::config::Approval;
use crate::audit::config::Audit;
use crate::backup::config::Backup;
use crate::budget::config::Budget;
use crate::kernel::cli::Subcommand;
use crate::kernel::config::text::directory;
pub use crate::kernel::config::{
    ChangeError, ConfigFile, Difference, Document, Editable, Error, FileError, Problem, Problems, Secret, Warning,
    edit, toml_of,
};
use crate::kernel::config::{MASK, Reader, Word, Words, table};
use crate::kernel::domain::Domain;
use crate::kernel::inputs::config::Inputs;
use crate::kernel::logging::config::{Log, LogLevel};
use crate::kernel::sandbox::config::ExecPolicy;
use crate::kernel::world_loop::config::World;
use crate::model::catalog::config::Catalog;
use crate::provider::config::{DefaultModel, Provider};
use crate::security::config::Security;
use crate::snapshot::config::Snapshots;
use crate::task::config::Queue;
use crate::tool::config::ToolInvoke;
use crate::trigger::config::Triggers;
use crate::upload::config::Uploads;
use crate::usage::config::{Price, Usage, note_prices};
use crate::web::config::Web;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "config",
    uses: &[
        "approval", "audit", "backup", "budget", "model", "provider", "security", "snapshot", "task", "tool",
        "trigger", "upload", "usage", "web",
    ],
    commands: &[Subcommand::group::<cli::Config>(9, "config", "Show, check or change the configuration")],
    ..Domain::EMPTY
};

/// A configuration that passed every check, and what was noticed on the way.
pub type Loaded = crate::kernel::config::Loaded<Config>;

table! {
    /// The whole effective configuration. Its serialised form is what `config show` and `GET /api/config` show:
    /// secrets replaced, every key present that has a value.
    #[check(Self::note)]
    pub struct Config {
        /// Address and port of the API; port 0 takes a free one. Beyond loopback only with `api_key`.
        api_listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 4545)) => text(listen).at_restart(),
        /// Clients must send `Authorization: Bearer <api_key>`. Empty: the API is open.
        api_key: Secret => secret(api_key),
        /// Origins that browsers may call from, such as "https://chat.example.org".
        cors_origin: Vec<Box<str>> => list(origin).protected(),
        /// off, error, warn, info, debug or trace. The variable RUST_LOG overrides it.
        log_level: LogLevel => choice(LogLevel::WORDS).writable(),
        /// default, stable or dev. Only `default` has an effect in this release.
        mode: Mode => choice(Mode::WORDS).writable().without_effect(),
        /// Where the stored files are, an absolute path. Default: `data` in the home.
        data_dir: Option<PathBuf> => text(directory).example("/srv/agentsvc").at_restart(),
        /// Cost units per second and client address, burst twice that; a read costs 1, a write 2, a message 10.
        rate_limit_per_second: NonZeroU32 = NonZeroU32::new(1_000).unwrap_or(NonZeroU32::MIN)
            => integer(1..=10_000_000).writable(),
        /// Has no effect in this release.
        network_enabled: bool => flag().without_effect(),
        /// Who answers for agents whose manifest names no model.
        default_model: DefaultModel => table(),
        /// One table per provider of models, under its name.
        providers: BTreeMap<Box<str>, Provider> => named("openai"),
        /// The world loop.
        world: World => table(),
        /// The task queue.
        queue: Queue => table(),
        /// What bounds the agents that events wake.
        triggers: Triggers => table(),
        /// The web tools of agents.
        web: Web => table(),
        /// Whether and how agents run commands.
        exec_policy: ExecPolicy => table(),
        /// Which tool calls wait for a person, and how a person decides.
        approval: Approval => table(),
        /// Which tools clients may call without an agent's turn; none unless allowed here.
        tool_invoke: ToolInvoke => table(),
        /// Files that clients send to agents.
        uploads: Uploads => table(),
        /// What may be spent; limits set by the API take the place of these.
        budget: Budget => table(),
        /// What models cost, one table for each; `*` as model is every other one of the provider.
        prices: BTreeMap<Box<str>, Price> => named("\"openai/gpt-4o-mini\""),
        /// Where newer catalogs of models come from.
        catalog: Catalog => table(),
        /// Usage events.
        usage: Usage => table(),
        /// The record of every action.
        audit: Audit => table(),
        /// Copies of everything in one file.
        backup: Backup => table(),
        /// Copies of the whole world in files.
        snapshots: Snapshots => table(),
        /// Content from outside, the turns that read it, and the signatures of manifests.
        security: Security => table(),
        /// What the world takes in, for replays.
        inputs: Inputs => table(),
        /// Log lines on stderr.
        log: Log => table(),
    }
}

impl Document for Config {
    const RESERVED: &'static [&'static str] = &[
        "a2a",
        "channels",
        "compaction",
        "context_engine",
        "external_auth",
        "inbox",
        "mcp_servers",
        "memory",
        "network",
        "pairing",
        "prompt_intelligence",
        "sidecar_channels",
        "terminal",
        "webhook_triggers",
    ];
}

/// The mode of the daemon. Only `default` has an effect in this release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The usual behaviour.
    #[default]
    Default,
    /// Nothing changes by itself.
    Stable,
    /// For development.
    Dev,
}

impl Word for Mode {
    const WORDS: Words<Self> = &[("default", Self::Default), ("stable", Self::Stable), ("dev", Self::Dev)];
}

impl Config {
    /// The same configuration, listening at `text` instead (`start --listen`).
    ///
    /// # Errors
    /// [`Error::Listen`] when `text` is not an address or is one that needs an `api_key`.
    pub fn with_listen(mut self, text: &str) -> Result<Self, Error> {
        self.api_listen = listen(text).map_err(|message| Error::Listen(format!("--listen {message}")))?;
        match self.open_to_others() {
            Some(message) => Err(Error::Listen(format!("--listen {message}"))),
            None => Ok(self),
        }
    }

    fn note(&self, reader: &mut Reader<'_, '_>) {
        if let Some(message) = self.open_to_others() {
            reader.problem("api_listen", message);
        }
        if self.mode != Mode::Default {
            reader.warning("mode", "`mode` other than \"default\" has no effect in this release".to_owned());
        }
        if self.network_enabled {
            reader.warning("network_enabled", "`network_enabled` has no effect in this release".to_owned());
        }
        self.note_models(reader);
        note_prices(&self.prices, reader);
    }

    /// Why the address may not be served: anyone who reaches it could use every agent.
    pub(crate) fn open_to_others(&self) -> Option<String> {
        let address = self.api_listen;
        let open = !address.ip().to_canonical().is_loopback() && !self.api_key.is_set();
        open.then(|| format!("{address} can be reached from other machines: set `api_key`, or listen on 127.0.0.1"))
    }
}

/// The data directory that the configuration `text` names.
pub fn data_dir_of(text: &str) -> Result<Option<PathBuf>, Error> {
    Ok(Config::parse(text, Path::new("config.toml"))?.config.data_dir)
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    let address = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let address = address.as_deref().unwrap_or(text).parse();
    address.map_err(|_| "must be an IP address and a port, such as \"127.0.0.1:4545\"".to_owned())
}

/// A key that a header can carry. Spaces at its ends would be lost on the way.
fn api_key(text: &str) -> Result<Secret, String> {
    if text == MASK {
        // An export that is used as a file would leave the API to whoever knows it.
        Err(format!("must not be \"{MASK}\", which stands for a secret that is not shown"))
    } else if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(Secret::new(text))
    } else {
        Err("must be printable ASCII without spaces, so that a header can carry it".to_owned())
    }
}

/// An origin as browsers send it: scheme, host, port; no path. `*` would let any page use the agents.
fn origin(text: &str) -> Result<Box<str>, String> {
    let wrong = || "must be an origin, such as \"https://chat.example.org\", without a path".to_owned();
    let url = reqwest::Url::parse(text).map_err(|_| wrong())?;
    let origin = url.origin().ascii_serialization();
    if matches!(url.scheme(), "http" | "https") && origin == text.trim_end_matches('/').to_ascii_lowercase() {
        Ok(origin.into())
    } else {
        Err(wrong())
    }
}

#[cfg(test)]
mod tests;
