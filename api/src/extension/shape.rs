//! The bodies of extensions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::http::timestamp::Moment;
use crate::mcp::servers::shape::{HealthItem, ToolItem};

/// An extension.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ExtensionItem {
    /// Its id, which is `{name}` of routes.
    pub(crate) name: String,
    /// Its name for people.
    pub(crate) display_name: String,
    pub(crate) description: String,
    /// Name of an icon, or the icon itself.
    pub(crate) icon: String,
    pub(crate) category: String,
    /// `available`: it is not installed; `setup`: it needs a credential or a sign-in; `connecting`; `ready`: its tools can be used;
    /// `error`: `error` says why it is not connected.
    pub(crate) status: &'static str,
    pub(crate) tags: Vec<String>,
    pub(crate) installed: bool,
    /// Number of its tools.
    pub(crate) tool_count: usize,
    /// When it was installed; null if it is not, or if config.toml has it.
    pub(crate) installed_at: Option<Moment>,
    /// `catalog`: an entry of the MCP catalog; `path`: a template that was installed from a path.
    pub(crate) source: &'static str,
    /// Why it is not connected; null if it is, or if it is not installed.
    pub(crate) error: Option<String>,
}

/// Extensions.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ExtensionList {
    pub(crate) extensions: Vec<ExtensionItem>,
    pub(crate) total: usize,
}

/// An extension with all that there is to know of it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ExtensionDetail {
    #[serde(flatten)]
    pub(crate) item: ExtensionItem,
    /// Variables that it needs; `credentials` of an installation.
    pub(crate) required_env: Vec<ExtensionVariable>,
    /// Whether it asks for a sign-in.
    pub(crate) has_oauth: bool,
    /// What you have to do first.
    pub(crate) setup_instructions: String,
    /// How its server is reached.
    pub(crate) transport: Map<String, Value>,
    /// Its MCP server, whose routes are those of `/api/mcp/servers`; null if it is not installed.
    pub(crate) server: Option<String>,
    /// Its health; null if it is not installed.
    pub(crate) health: Option<HealthItem>,
    /// Its tools, which agents call by these names.
    pub(crate) tools: Vec<ToolItem>,
}

/// A variable that an extension needs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ExtensionVariable {
    pub(crate) name: String,
    /// Its name for people.
    pub(crate) label: String,
    /// What it is.
    pub(crate) help: String,
    /// Whether it is not to be shown.
    pub(crate) is_secret: bool,
    /// Where you get it.
    pub(crate) get_url: String,
    /// Whether the installed extension has a value for it.
    pub(crate) is_set: bool,
}

/// Which extensions a list has.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ExtensionQuery {
    /// Whether those that can be installed are listed, too. Default: false.
    #[serde(default)]
    pub(crate) available: bool,
}

/// An extension to install: `name` or `source`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct InstallBody {
    /// Entry of the MCP catalog.
    pub(crate) name: Option<String>,
    /// Absolute path of a template on the daemon's machine: a file, or a directory with `MCP.toml`. The name of an entry of the
    /// catalog is taken as `name`.
    pub(crate) source: Option<String>,
    /// Values of the variables that it needs, kept in the vault. Never returned.
    pub(crate) credentials: BTreeMap<String, String>,
}

/// An extension to uninstall.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct UninstallBody {
    /// Its name.
    pub(crate) name: Option<String>,
}

/// An extension was installed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Installed {
    /// `installed`
    pub(crate) status: &'static str,
    pub(crate) name: String,
    /// Whether its server is connected.
    pub(crate) connected: bool,
    pub(crate) tool_count: usize,
    /// Why it is not connected; null if it is, or if it is still connecting.
    pub(crate) error: Option<String>,
    /// Variables that it needs and that have no value.
    pub(crate) missing: Vec<String>,
}

/// An extension was uninstalled.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Uninstalled {
    /// `uninstalled`
    pub(crate) status: &'static str,
    pub(crate) name: String,
}
