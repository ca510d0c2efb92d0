//! The bodies of MCP servers and of their catalog.

use std::collections::BTreeMap;

use agentsvc_components::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::http::shape::shape;
use crate::http::timestamp::Moment;
use crate::mcp::servers::sign_in::SignInStatus;

/// An MCP server.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ServerItem {
    /// Its name, which is `{id}` of routes.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `connected`, `connecting` or `disconnected`; `added` and `updated` in the replies of these requests.
    pub status: &'static str,
    /// Whether it is connected.
    pub connected: bool,
    /// Why it is not connected; null if it is.
    pub error: Option<String>,
    /// `type` is `stdio`, `http`, `sse` or `http_compat`, with `command` and `args` or with the URL; null if its catalog entry is
    /// missing. The query of a URL is hidden.
    pub transport: Option<Map<String, Value>>,
    /// Program of a stdio server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Arguments of a stdio server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// The catalog entry that it was installed from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// `config` for servers of config.toml, which are changed there; `api` for others.
    pub source: &'static str,
    /// Names of its environment variables. Values are never shown.
    pub env: Vec<String>,
    /// Those of them that have no value, here or in the environment of the daemon.
    pub missing_env: Vec<String>,
    /// Names of the headers of requests to it. Values are never shown.
    pub headers: Vec<String>,
    /// Timeout of a call in seconds.
    pub timeout_secs: u64,
    /// Whether its program can use the network.
    pub network: bool,
    /// Whether it may ask the model of the agent that calls it: `off`, `approve` or `on`.
    pub sampling: &'static str,
    /// Whether OAuth settings were given.
    pub has_oauth: bool,
    /// How it is signed in to, without the URL of a sign-in that is pending.
    pub auth: SignInStatus,
    /// Number of its tools.
    pub tool_count: usize,
    /// Its tools. A list of servers has the first 100 of each.
    pub tools: Vec<ToolItem>,
    /// Its tools whose name, description or schema looks like a prompt injection.
    pub flagged_tools: Vec<FlaggedTool>,
    /// Tools that wait until you accept them; null if there are none.
    pub tools_review: Option<ToolsReview>,
}

/// A tool of an MCP server that looks like a prompt injection.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct FlaggedTool {
    /// Its name for agents.
    pub name: String,
    /// `marked`: models read it as data. `description_withheld`: models do not read its description. `left_out`: it is not
    /// offered.
    pub action: &'static str,
    /// Reasons of the scanner, such as `override`; `unscanned` if the texts of the server's tools are too long.
    pub reasons: Vec<String>,
}

/// Tools of an MCP server that are not as they were accepted.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ToolsReview {
    /// Names this list of tools in `accept-tools`.
    pub hash: String,
    /// Tools that were not there. They are not offered.
    pub new: Vec<ReviewedTool>,
    /// Tools with another description, schema or hints. They are not offered.
    pub changed: Vec<ReviewedTool>,
    /// Names of tools that are not there any more.
    pub removed: Vec<String>,
}

/// A tool of an MCP server that waits until you accept it.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ReviewedTool {
    /// What models would read of it.
    #[serde(flatten)]
    pub tool: ToolItem,
    /// The JSON schema of its input. A list of servers does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// Its hints `readOnlyHint` and `idempotentHint`, as far as the server gives them: with one that is true, calls are repeated
    /// after a restart of the daemon. A list of servers does not have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Map<String, Value>>,
}

/// A tool of an MCP server.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ToolItem {
    /// Its name for agents: `mcp_<server>_<tool>`.
    pub name: String,
    /// Its description by the server, at most 4 KiB; 300 bytes in a list of servers.
    pub description: String,
}

/// How a server is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerHealth {
    /// Its name.
    pub id: String,
    /// `connected`, `connecting` or `disconnected`.
    pub status: &'static str,
    /// How many tools it has.
    pub tool_count: usize,
    /// How many tools wait for the operator.
    pub tools_to_review: usize,
    /// When it last answered.
    pub last_ok: Option<Timestamp>,
    /// The last failure.
    pub last_error: Option<String>,
    /// Failures since it last answered.
    pub consecutive_failures: u32,
    /// Is it going to be started again?
    pub reconnecting: bool,
    /// Attempts since it was last connected.
    pub reconnect_attempts: u32,
    /// Since when it has been connected.
    pub connected_since: Option<Timestamp>,
    /// How it is signed in to.
    pub auth: SignInStatus,
}

shape! {
    /// The health of an MCP server.
    pub(crate) struct HealthItem from health: ServerHealth {
        /// Its name.
        id: String = health.id,
        /// `connected`, `connecting` or `disconnected`.
        status: &'static str = health.status,
        tool_count: usize = health.tool_count,
        /// New and changed tools that wait until you accept them.
        tools_to_review: usize = health.tools_to_review,
        /// When it last answered; null if it never has.
        last_ok: Option<Moment> = health.last_ok.map(Moment),
        /// The last failure, also if it was overcome; null if there was none.
        last_error: Option<String> = health.last_error,
        /// Failures since it last answered.
        consecutive_failures: u32 = health.consecutive_failures,
        /// Whether the daemon will try to start it again.
        reconnecting: bool = health.reconnecting,
        /// Attempts since it was last connected.
        reconnect_attempts: u32 = health.reconnect_attempts,
        /// Null if it is not connected.
        connected_since: Option<Moment> = health.connected_since.map(Moment),
        /// How it is signed in to, without the URL of a sign-in that is pending.
        auth: SignInStatus = health.auth,
    }
}

/// The health of all MCP servers.
#[derive(Serialize, JsonSchema)]
pub(crate) struct HealthList {
    pub(crate) health: Vec<HealthItem>,
    pub(crate) count: usize,
}

/// MCP servers.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ServerList {
    pub(crate) servers: Vec<ServerItem>,
    pub(crate) total: usize,
    /// Names of all servers.
    pub(crate) configured: Vec<String>,
    /// Names of those that are connected.
    pub(crate) connected: Vec<String>,
    pub(crate) total_configured: usize,
    pub(crate) total_connected: usize,
}

/// A server that was added or updated.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ServerChanged {
    /// `reloaded`: the change is in effect.
    pub(crate) reload: &'static str,
    #[serde(flatten)]
    pub(crate) server: ServerItem,
}

/// A server that was reconnected.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Reconnected {
    /// Its name.
    pub(crate) id: String,
    /// `connected`, or `connecting` if it takes longer than 10 seconds.
    pub(crate) status: &'static str,
    pub(crate) tool_count: usize,
}

/// The servers were reloaded.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Reloaded {
    /// `reloaded`
    pub(crate) status: &'static str,
    /// Servers that were started and connected within 5 seconds.
    pub(crate) new_connections: usize,
}

/// The error output of an MCP server.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ServerLog {
    /// Its name.
    pub(crate) id: String,
    /// The last 16 KiB that its program wrote to stderr, over restarts. Known secrets are replaced with `***`.
    pub(crate) log: String,
}

/// The MCP catalog.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CatalogList {
    pub(crate) entries: Vec<CatalogItem>,
    pub(crate) count: usize,
}

/// An entry of the MCP catalog.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct CatalogItem {
    /// `template_id` of an installation.
    pub id: String,
    /// Whether a server was installed from it.
    pub installed: bool,
    /// How its server is reached, as in the entry.
    pub transport: Map<String, Value>,
    /// What the entry says.
    #[serde(flatten)]
    pub text: CatalogText,
}

/// What an entry of the catalog says of its server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CatalogText {
    /// Its name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Any word.
    pub category: String,
    /// Name of an icon, or the icon itself.
    pub icon: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Variables that the server needs; `credentials` of an installation.
    pub required_env: Vec<RequiredEnv>,
    /// How its server is signed in to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<CatalogOauth>,
    /// The health check that it asks for.
    pub health_check: CatalogHealthCheck,
    /// What the user has to do first.
    pub setup_instructions: String,
    /// Name and description by language.
    pub i18n: BTreeMap<String, Translation>,
}

/// A variable that a server needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RequiredEnv {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub label: String,
    /// What it is.
    pub help: String,
    /// Whether it is not to be shown.
    pub is_secret: bool,
    /// Where users get it.
    pub get_url: String,
}

/// How the server of an entry is signed in to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CatalogOauth {
    /// A word such as `google`.
    pub provider: String,
    /// Scopes to ask for.
    pub scopes: Vec<String>,
    /// Where users sign in.
    pub auth_url: Option<String>,
    /// Where tokens are.
    pub token_url: Option<String>,
    /// The client that is registered there.
    pub client_id: Option<String>,
}

/// The health check that an entry asks for. `[extensions]` decides for all servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CatalogHealthCheck {
    /// Seconds between two checks.
    pub interval_secs: u64,
    /// Checks that may fail.
    pub unhealthy_threshold: u64,
}

impl Default for CatalogHealthCheck {
    fn default() -> Self {
        Self { interval_secs: 60, unhealthy_threshold: 3 }
    }
}

/// An entry's name and description in a language.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Translation {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
}
