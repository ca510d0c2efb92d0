//! `{home}/config.toml`: the tables of all domains, joined, and what concerns several of them.

pub(crate) mod cli;
pub(crate) mod key_guard;
mod models;
mod settings;
mod view;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentsvc_components::kernel::limit;
use serde::Serialize;

use crate::a2a::config::A2a;
use crate::approval::config::Approval;
use crate::audit::config::Audit;
use crate::auto_dream::config::AutoDream;
use crate::backup::config::Backup;
use crate::browser::config::Browser;
use crate::budget::config::Budget;
use crate::channel::auto_reply::{AutoReplyConfig, note_auto_reply};
use crate::channel::config::{ChannelsConfig, SidecarChannel, former_channel, note_channels};
use crate::channel::role_mapping::{RoleMapping, note_roles};
use crate::channel::routing::{Binding, Broadcast, ROUTES_MAX, binding};
use crate::channel::web_chat::{WebChat, note_sites};
use crate::checkpoint::config::Checkpoints;
use crate::cluster::config::ClusterConfig;
use crate::hand::config::Hands;
use crate::history::config::History;
use crate::hook::config::WebhookTriggers;
use crate::inbox::config::Inbox;
use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::config::text::directory;
pub use crate::kernel::config::{
    ChangeError, ConfigFile, Difference, Document, Editable, Error, FileError, Former, Problem, Problems, Secret,
    Warning, edit, toml_of,
};
use crate::kernel::config::{MASK, Reader, Word, table};
use crate::kernel::domain::Domain;
use crate::kernel::logging::config::{Log, LogLevel};
use crate::kernel::sandbox::config::{ExecPolicy, Workspaces};
use crate::kernel::server::Server;
use crate::kernel::world_loop::config::World;
use crate::mcp::client::config::{Extensions, McpClient, note_servers};
use crate::mcp::config::McpServer;
use crate::media::config::Media;
use crate::memory_index::config::MemoryConfig;
use crate::model::catalog::config::Catalog;
use crate::pairing::config::Pairing;
use crate::peer::config::NetworkConfig;
use crate::people::config::{People, UserConfig, note_users};
use crate::plugin::config::ContextEngine;
use crate::proactive_memory::config::ProactiveMemory;
use crate::prompt::config::PromptIntelligence;
use crate::provider::config::{DefaultModel, Provider};
use crate::replay::inputs::config::Inputs;
use crate::security::config::Security;
use crate::session::config::Sessions;
use crate::sign_in::config::ExternalAuth;
use crate::skill::config::SkillSettings;
use crate::skill_source::config::{ClawHub, ClawHubCn, Registry, SkillSources};
use crate::snapshot::config::Snapshots;
use crate::task::config::Queue;
use crate::terminal::config::TerminalSettings;
use crate::tool::config::ToolInvoke;
use crate::trigger::config::Triggers;
use crate::upload::config::Uploads;
use crate::usage::config::{Price, Usage, note_prices};
use crate::web::config::Web;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "config",
    uses: &[
        "approval",
        "audit",
        "backup",
        "budget",
        "model",
        "provider",
        "security",
        "snapshot",
        "task",
        "tool",
        "trigger",
        "upload",
        "usage",
        "web",
        "manifest",
        "replay",
        "mcp",
        "a2a",
        "peer",
        "proactive_memory",
        "auto_dream",
        "browser",
        "media",
        "hand",
        "memory_index",
        "checkpoint",
        "skill",
        "skill_source",
        "hook",
        "inbox",
        "channel",
        "people",
        "session",
        "plugin",
        "prompt",
        "sign_in",
        "pairing",
        "terminal",
        "history",
        "cluster",
    ],
    commands: &[Subcommand::group::<cli::Config>(9, "config", "Show, check or change the configuration")
        .examples(&[
            Example::new("config set budget.daily_limit_usd 10", "Set one key"),
            Example::new("config get default_model.model", "Print one value"),
            Example::new("config keys", "List all keys, and what they take"),
            Example::new("config check", "Check the file before a start"),
        ])
        .under(Group::Daemon)],
    ..Domain::EMPTY
};

/// A configuration that passed every check, and what was noticed on the way.
pub type Loaded = crate::kernel::config::Loaded<Config>;

table! {
    /// The whole effective configuration. Its serialised form is what `config show` and `GET /api/config` show:
    /// secrets replaced, every key present that has a value.
    #[check(Self::note)]
    pub struct Config {
        /// Address and port of the API. Port 0 selects a free port. Addresses other than loopback need an `api_key` of at least
        /// 32 characters.
        api_listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 4545)) => text(listen).at_restart(),
        /// Clients must send `Authorization: Bearer <api_key>`. If empty, the API needs no key. `agentsvc init --key` makes one.
        api_key: Secret => secret(api_key),
        /// Origins allowed to call the API from browsers, such as "https://chat.example.org".
        cors_origin: Vec<Box<str>> => list(origin).protected(),
        /// off, error, warn, info, debug or trace. The environment variable RUST_LOG overrides it.
        log_level: LogLevel => choice(LogLevel::WORDS).writable(),
        /// default, stable or dev. Only `default` has an effect in this release.
        mode: Mode => choice(Mode::WORDS).writable().without_effect(),
        /// Data directory, an absolute path. Default: `data` in the home.
        data_dir: Option<PathBuf> => text(directory).example("/srv/agentsvc").at_restart(),
        /// Rate limit per client address, in cost units per second: a read costs 1, a write 2, a message 10. Bursts can
        /// use twice as much.
        rate_limit_per_second: NonZeroU32 = NonZeroU32::new(1_000).unwrap_or(NonZeroU32::MIN)
            => integer(1..=10_000_000).writable(),
        /// Connect to other nodes and let them connect. Needs `[network] shared_secret`.
        network_enabled: bool => flag().protected().at_restart(),
        /// Model of agents whose manifest does not set one.
        default_model: DefaultModel => table(),
        /// Model providers, one table each.
        providers: BTreeMap<Box<str>, Provider> => named("openai"),
        /// HTTP server.
        server: Server => table(),
        /// World loop.
        world: World => table(),
        /// Task queue and concurrency.
        queue: Queue => table(),
        /// Limits of triggers.
        triggers: Triggers => table(),
        /// Web tools of agents.
        web: Web => table(),
        /// Commands of agents.
        exec_policy: ExecPolicy => table(),
        /// Files of agents.
        workspaces: Workspaces => table(),
        /// Conversations of agents.
        sessions: Sessions => table(),
        /// Tool calls that need approval.
        approval: Approval => table(),
        /// Tools that clients can call directly; none by default.
        tool_invoke: ToolInvoke => table(),
        /// The daemon as an MCP server.
        mcp_server: McpServer => table(),
        /// MCP servers whose tools agents can use, one table each; or a list, `[[mcp_servers]]`, of tables with `name`.
        mcp_servers: BTreeMap<Box<str>, McpClient> => named_or_listed("files"),
        /// How MCP servers are kept running.
        extensions: Extensions => table(),
        /// Agents that others reach over the Agent2Agent protocol.
        a2a: A2a => table(),
        /// Hooks: other programs wake agents and send them messages.
        webhook_triggers: WebhookTriggers => table(),
        /// The file inbox: files of a folder become messages of agents.
        inbox: Inbox => table(),
        /// Other nodes and their agents.
        network: NetworkConfig => table(),
        /// Memory entries that agents keep.
        proactive_memory: ProactiveMemory => table(),
        /// Consolidation of memory by agents that are idle.
        auto_dream: AutoDream => table(),
        /// Versions of system prompts, and experiments that compare them.
        prompt_intelligence: PromptIntelligence => table(),
        /// Browsers of agents.
        browser: Browser => table(),
        /// Images, speech, videos, music and transcripts.
        media: Media => table(),
        /// Packages of agents.
        hands: Hands => table(),
        /// Search of memory entries.
        memory: MemoryConfig => table(),
        /// Files of workspaces as they were before tools changed them.
        checkpoints: Checkpoints => table(),
        /// Skills: what they get of the environment, and their settings.
        skills: SkillSettings => table(),
        /// Plugins that take part in turns.
        context_engine: ContextEngine => table(),
        /// ClawHub, a hub of skills.
        clawhub: ClawHub => table(),
        /// Mirror of ClawHub.
        clawhub_cn: ClawHubCn => table(),
        /// Registry of skills.
        registry: Registry => table(),
        /// Other sources of skills.
        skill_sources: SkillSources => table(),
        /// Channels: adapters of chat platforms, a list, `[[sidecar_channels]]`, of tables with `name`.
        sidecar_channels: BTreeMap<Box<str>, Arc<SidecarChannel>> => named_or_listed("ntfy"),
        /// Web chats on sites, a list, `[[web_chats]]`, of tables with `name`.
        web_chats: BTreeMap<Box<str>, WebChat> => named_or_listed("shop"),
        /// Rules that choose the agent of a message, a list, `[[bindings]]`, of tables with `agent` and `match_rule`.
        bindings: Vec<Binding> => objects(binding)
            .example("[{ agent = \"assistant\", match_rule = { channel = \"telegram\", peer_id = \"123456\" } }]")
            .protected(),
        /// Conversations that several agents answer.
        broadcast: Broadcast => table(),
        /// What people with roles of a platform may do in paired chats, one table for each channel or type of channel.
        channel_role_mapping: BTreeMap<Box<str>, RoleMapping> => named("discord"),
        /// People who use this installation, a list, `[[users]]`, of tables with `name`.
        users: BTreeMap<Box<str>, UserConfig> => named_or_listed("ann"),
        /// What holds for all users.
        people: People => table(),
        /// Single sign-on at identity providers (OpenID Connect).
        external_auth: ExternalAuth => table(),
        /// Phones and other devices with API keys of their own.
        pairing: Pairing => table(),
        /// Shells on this machine for admins and owners.
        terminal: TerminalSettings => table(),
        /// What holds for all channels.
        channels: ChannelsConfig => table(),
        /// Limits of the answers to chats.
        auto_reply: AutoReplyConfig => table(),
        /// Files that clients upload for agents.
        uploads: Uploads => table(),
        /// Budget limits. Limits set over the API override these.
        budget: Budget => table(),
        /// Model prices, one table each. The model `*` matches all other models of the provider.
        prices: BTreeMap<Box<str>, Price> => named("\"openai/gpt-4o-mini\""),
        /// Remote model catalog.
        catalog: Catalog => table(),
        /// Usage events.
        usage: Usage => table(),
        /// What happened in the installation, minute by minute.
        history: History => table(),
        /// Audit log.
        audit: Audit => table(),
        /// Backups of the whole home.
        backup: Backup => table(),
        /// Snapshots of the world.
        snapshots: Snapshots => table(),
        /// Untrusted content and signed manifests.
        security: Security => table(),
        /// Input log for replays.
        inputs: Inputs => table(),
        /// Several nodes that keep one world.
        cluster: ClusterConfig => table(),
        /// Log output.
        log: Log => table(),
    }
}

impl Document for Config {
    const RESERVED: &'static [&'static str] = &["compaction"];
    const FORMER: Former = &[("channels", former_channel)];
}

agentsvc_components::enum_words! {
    /// The mode of the daemon. Only `default` has an effect in this release.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Mode [Word] {
        /// The usual behaviour.
        #[default]
        Default = "default",
        /// Nothing changes by itself.
        Stable = "stable",
        /// For development.
        Dev = "dev",
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

    fn note(&self, reader: &mut Reader<'_, '_>) {
        if let Some(message) = self.open_to_others() {
            reader.problem("api_listen", message);
        } else if self.api_key.is_set() && self.api_key.expose().len() < limit::API_KEY_BYTES_MIN {
            let least = limit::API_KEY_BYTES_MIN;
            let text = format!("`api_key` has fewer than {least} characters; `agentsvc init --key` makes a strong one");
            reader.warning("api_key", text);
        }
        if self.mode != Mode::Default {
            reader.warning("mode", "`mode` other than \"default\" has no effect in this release".to_owned());
        }
        if let Some((key, message)) = self.network.warning(self.network_enabled) {
            reader.warning(key, message);
        }
        self.note_models(reader);
        note_prices(&self.prices, reader);
        note_servers(&self.mcp_servers, reader);
        note_channels(&self.sidecar_channels, reader);
        note_auto_reply(&self.auto_reply, reader);
        note_users(&self.users, reader);
        note_roles(&self.channel_role_mapping, reader);
        note_sites(&self.web_chats, &self.sidecar_channels, reader);
        if self.bindings.len() > ROUTES_MAX {
            reader.problem("bindings", format!("must be at most {ROUTES_MAX} bindings"));
        }
    }

    /// Why the address may not be served: anyone who reaches it could use every agent.
    pub(crate) fn open_to_others(&self) -> Option<String> {
        let address = self.api_listen;
        if address.ip().to_canonical().is_loopback() {
            return None;
        }
        let wrong = match self.api_key.expose().len() {
            0 => "needs an `api_key`".to_owned(),
            limit::API_KEY_BYTES_MIN.. => return None,
            short => format!("needs an `api_key` of at least {} characters, not {short}", limit::API_KEY_BYTES_MIN),
        };
        Some(format!(
            "{address} accepts connections from other machines and {wrong}; run `agentsvc init --key`, or listen on 127.0.0.1"
        ))
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
        Err(format!("must not be \"{MASK}\", the mask of a hidden secret"))
    } else if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(Secret::new(text))
    } else {
        Err("must be printable ASCII without spaces".to_owned())
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
