//! The top level of the file: scalars first, then the tables.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::Serialize;

use super::key::{Key, Table, Word};
use super::reader::Reader;
use super::secret::MASK;
use super::{
    Approval, Audit, Backup, Budget, Catalog, DefaultModel, Error, ExecPolicy, Inputs, Log, Price, Provider, Queue,
    Secret, Security, Snapshots, ToolInvoke, Triggers, Uploads, Usage, Web, World,
};

/// The whole effective configuration. Its serialised form is what `config show` and `GET /api/config` show:
/// secrets replaced, every key present that has a value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Config {
    /// Where the API listens. Beyond loopback only with an `api_key`.
    pub api_listen: SocketAddr,
    /// The bearer key of the API; not set means open (spec 1, Authentication).
    pub api_key: Secret,
    /// Origins that browsers may call from; empty means localhost only in open mode.
    pub cors_origin: Vec<Box<str>>,
    /// How much is logged.
    pub log_level: LogLevel,
    /// The mode of the daemon.
    pub mode: Mode,
    /// Where the stored files are; `None` is `{home}/data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<PathBuf>,
    /// Cost units per second and client address; bursts may take twice that.
    pub rate_limit_per_second: NonZeroU32,
    /// Whether peers may connect; has no effect in this release.
    pub network_enabled: bool,
    /// `[default_model]`.
    pub default_model: DefaultModel,
    /// `[providers.<name>]`.
    pub providers: BTreeMap<Box<str>, Provider>,
    /// `[world]`.
    pub world: World,
    /// `[queue]`.
    pub queue: Queue,
    /// `[triggers]`.
    pub triggers: Triggers,
    /// `[web]`.
    pub web: Web,
    /// `[exec_policy]`.
    pub exec_policy: ExecPolicy,
    /// `[approval]`.
    pub approval: Approval,
    /// `[tool_invoke]`.
    pub tool_invoke: ToolInvoke,
    /// `[uploads]`.
    pub uploads: Uploads,
    /// `[budget]`.
    pub budget: Budget,
    /// `[prices."<provider>/<model>"]`.
    pub prices: BTreeMap<Box<str>, Price>,
    /// `[catalog]`.
    pub catalog: Catalog,
    /// `[usage]`.
    pub usage: Usage,
    /// `[audit]`.
    pub audit: Audit,
    /// `[backup]`.
    pub backup: Backup,
    /// `[snapshots]`.
    pub snapshots: Snapshots,
    /// `[security]`.
    pub security: Security,
    /// `[inputs]`.
    pub inputs: Inputs,
    /// `[log]`.
    pub log: Log,
}

/// The least severe lines that are logged. `RUST_LOG` overrides it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// What failed and needs someone.
    Error,
    /// What is wrong but was dealt with.
    Warn,
    /// What happens.
    #[default]
    Info,
    /// What helps to find a fault.
    Debug,
    /// Everything.
    Trace,
}

impl Word for LogLevel {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("off", Self::Off),
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];
}

impl LogLevel {
    /// As written in the file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, level)| *level == self).map_or("info", |(word, _)| word)
    }
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
    const WORDS: &'static [(&'static str, Self)] =
        &[("default", Self::Default), ("stable", Self::Stable), ("dev", Self::Dev)];
}

/// The keys of the top level.
pub(crate) const KEYS: &[Key] = &[
    Key::text(
        "api_listen",
        "\"127.0.0.1:4545\"",
        "Address and port of the API; port 0 takes a free one. Beyond loopback only with `api_key`.",
    )
    .at_restart(),
    Key::secret("api_key", "Clients must send `Authorization: Bearer <api_key>`. Empty: the API is open."),
    Key::list("cors_origin", "[]", "Origins that browsers may call from, such as \"https://chat.example.org\".")
        .protected(),
    Key::choice::<LogLevel>(
        "log_level",
        "\"info\"",
        "off, error, warn, info, debug or trace. The variable RUST_LOG overrides it.",
    )
    .writable(),
    Key::choice::<Mode>("mode", "\"default\"", "default, stable or dev. Only `default` has an effect in this release.")
        .writable()
        .without_effect(),
    Key::text(
        "data_dir",
        "\"/srv/agentsvc\"",
        "Where the stored files are, an absolute path. Default: `data` in the home.",
    )
    .example()
    .at_restart(),
    Key::integer(
        "rate_limit_per_second",
        1..=10_000_000,
        "1000",
        "Cost units per second and client address, burst twice that; a read costs 1, a write 2, a message 10.",
    )
    .writable(),
    Key::flag("network_enabled", "false", "Has no effect in this release.").without_effect(),
    Key::table::<DefaultModel>("default_model", "Who answers for agents whose manifest names no model."),
    Key::named::<Provider>("providers", "openai", "One table per provider of models, under its name."),
    Key::table::<World>("world", "The world loop."),
    Key::table::<Queue>("queue", "The task queue."),
    Key::table::<Triggers>("triggers", "What bounds the agents that events wake."),
    Key::table::<Web>("web", "The web tools of agents."),
    Key::table::<ExecPolicy>("exec_policy", "Whether and how agents run commands."),
    Key::table::<Approval>("approval", "Which tool calls wait for a person, and how a person decides."),
    Key::table::<ToolInvoke>(
        "tool_invoke",
        "Which tools clients may call without an agent's turn; none unless allowed here.",
    ),
    Key::table::<Uploads>("uploads", "Files that clients send to agents."),
    Key::table::<Budget>("budget", "What may be spent; limits set by the API take the place of these."),
    Key::named::<Price>(
        "prices",
        "\"openai/gpt-4o-mini\"",
        "What models cost, one table for each; `*` as model is every other one of the provider.",
    ),
    Key::table::<Catalog>("catalog", "Where newer catalogs of models come from."),
    Key::table::<Usage>("usage", "Usage events."),
    Key::table::<Audit>("audit", "The record of every action."),
    Key::table::<Backup>("backup", "Copies of everything in one file."),
    Key::table::<Snapshots>("snapshots", "Copies of the whole world in files."),
    Key::table::<Security>(
        "security",
        "Content from outside, the turns that read it, and the signatures of manifests.",
    ),
    Key::table::<Inputs>("inputs", "What the world takes in, for replays."),
    Key::table::<Log>("log", "Log lines on stderr."),
];

impl Default for Config {
    fn default() -> Self {
        Self {
            api_listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 4545)),
            api_key: Secret::default(),
            cors_origin: Vec::new(),
            log_level: LogLevel::default(),
            mode: Mode::default(),
            data_dir: None,
            rate_limit_per_second: NonZeroU32::new(1000).unwrap_or(NonZeroU32::MIN),
            network_enabled: false,
            default_model: DefaultModel::default(),
            providers: BTreeMap::new(),
            world: World::default(),
            queue: Queue::default(),
            triggers: Triggers::default(),
            web: Web::default(),
            exec_policy: ExecPolicy::default(),
            approval: Approval::default(),
            tool_invoke: ToolInvoke::default(),
            uploads: Uploads::default(),
            budget: Budget::default(),
            prices: BTreeMap::new(),
            catalog: Catalog::default(),
            usage: Usage::default(),
            audit: Audit::default(),
            backup: Backup::default(),
            snapshots: Snapshots::default(),
            security: Security::default(),
            inputs: Inputs::default(),
            log: Log::default(),
        }
    }
}

impl Table for Config {
    const KEYS: &'static [Key] = KEYS;

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let default = Self::default();
        let rate = reader.integer("rate_limit_per_second").and_then(NonZeroU32::new);
        let config = Self {
            api_listen: reader.parsed("api_listen", listen).unwrap_or(default.api_listen),
            api_key: reader.parsed("api_key", api_key).unwrap_or_default(),
            cors_origin: reader.list("cors_origin", origin).unwrap_or_default(),
            log_level: reader.choice("log_level").unwrap_or_default(),
            mode: reader.choice("mode").unwrap_or_default(),
            data_dir: reader.parsed("data_dir", directory),
            rate_limit_per_second: rate.unwrap_or(default.rate_limit_per_second),
            network_enabled: reader.flag("network_enabled").unwrap_or_default(),
            default_model: reader.table("default_model"),
            providers: reader.named("providers"),
            world: reader.table("world"),
            queue: reader.table("queue"),
            triggers: reader.table("triggers"),
            web: reader.table("web"),
            exec_policy: reader.table("exec_policy"),
            approval: reader.table("approval"),
            tool_invoke: reader.table("tool_invoke"),
            uploads: reader.table("uploads"),
            budget: reader.table("budget"),
            prices: reader.named("prices"),
            catalog: reader.table("catalog"),
            usage: reader.table("usage"),
            audit: reader.table("audit"),
            backup: reader.table("backup"),
            snapshots: reader.table("snapshots"),
            security: reader.table("security"),
            inputs: reader.table("inputs"),
            log: reader.table("log"),
        };
        config.note_combinations(reader);
        config.note_models(reader);
        config.note_prices(reader);
        config
    }
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

    fn note_combinations(&self, reader: &mut Reader<'_, '_>) {
        if let Some(message) = self.open_to_others() {
            reader.problem("api_listen", message);
        }
        if self.mode != Mode::Default {
            reader.warning("mode", "`mode` other than \"default\" has no effect in this release".to_owned());
        }
        if self.network_enabled {
            reader.warning("network_enabled", "`network_enabled` has no effect in this release".to_owned());
        }
    }

    /// Notes prices that no model can have.
    fn note_prices(&self, reader: &mut Reader<'_, '_>) {
        for name in self.prices.keys() {
            if !matches!(name.split_once('/'), Some((provider, model)) if !provider.is_empty() && !model.is_empty()) {
                let message = "must be named \"<provider>/<model>\", such as \"openai/gpt-4o\" or \"openai/*\"";
                reader.problem_at(&["prices", name], message.to_owned());
            }
        }
    }

    /// Why the address may not be served: anyone who reaches it could use every agent.
    pub(crate) fn open_to_others(&self) -> Option<String> {
        let address = self.api_listen;
        let open = !address.ip().to_canonical().is_loopback() && !self.api_key.is_set();
        open.then(|| format!("{address} can be reached from other machines: set `api_key`, or listen on 127.0.0.1"))
    }
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

pub(super) fn directory(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() && !text.contains('\0') { Ok(path) } else { Err("must be an absolute path".to_owned()) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Config, origin};
    use crate::config::{Loaded, parse};

    fn read(text: &str) -> Result<Loaded, String> {
        parse(text, Path::new("c")).map_err(|error| error.to_string())
    }

    #[test]
    fn an_open_address_beyond_loopback_is_refused() {
        let error = read("api_listen = \"0.0.0.0:4545\"\n").unwrap_err();
        assert!(error.starts_with("c:1:14: api_listen: 0.0.0.0:4545 can be reached from other machines"), "{error}");
        assert!(read("api_listen = \"0.0.0.0:4545\"\napi_key = \"k\"\n").is_ok());
        assert!(read("api_listen = \"[::1]:0\"\n").is_ok());
        assert!(read("api_listen = \"[::ffff:127.0.0.1]:0\"\n").is_ok());
        assert!(read("api_listen = \"localhost:80\"\n").is_ok());
        assert!(Config::default().with_listen("0.0.0.0:1").is_err());
        assert!(Config::default().with_listen("nonsense").is_err());
        assert_eq!(Config::default().with_listen("127.0.0.1:0").unwrap().api_listen.port(), 0);
    }

    #[test]
    fn origins_are_exact() {
        assert_eq!(origin("https://Chat.example.org").unwrap().as_ref(), "https://chat.example.org");
        assert_eq!(origin("http://localhost:3000/").unwrap().as_ref(), "http://localhost:3000");
        assert!(["*", "chat.example.org", "https://x/path", "ftp://x"].into_iter().all(|text| origin(text).is_err()));
        assert!(read("cors_origin = [\"https://a\", 3]\n").unwrap_err().contains("must be a list of strings"));
    }

    #[test]
    fn what_has_no_effect_is_said() {
        let warnings = read("mode = \"stable\"\nnetwork_enabled = true\n").unwrap().warnings;
        assert_eq!(warnings.len(), 2);
        assert!(read("mode = \"default\"\n").unwrap().warnings.is_empty());
        assert!(read("mode = \"stabel\"\n").unwrap_err().contains("did you mean `stable`?"));
    }

    #[test]
    fn secrets_are_never_shown() {
        let config = read("api_key = \"hunter2\"\n").unwrap().config;
        assert!(!format!("{config:?}").contains("hunter2"));
        assert!(!toml::to_string(&config).unwrap().contains("hunter2"));
        assert!(toml::to_string(&config).unwrap().contains("api_key = \"***\""));
    }
}
