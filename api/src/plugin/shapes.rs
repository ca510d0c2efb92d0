//! Plugins as answers show them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A plugin in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PluginRow {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub display_name: String,
    /// Its version.
    pub version: String,
    /// What it does; may be empty.
    pub description: String,
    /// Empty if it is not known.
    pub author: String,
    /// The hooks that it has, such as `ingest`.
    pub hooks: Vec<String>,
    /// Whether the files of all hooks are there.
    pub hooks_valid: bool,
    /// Whether its hooks run if `[context_engine]` names it.
    pub enabled: bool,
    /// Whether its hooks run in turns now.
    pub active: bool,
    /// Bytes of its files.
    pub size_bytes: u64,
    /// Its folder.
    pub path: String,
}

/// A folder that cannot be loaded as a plugin.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FailedPlugin {
    /// The folder's name.
    pub name: String,
    /// Why.
    pub error: String,
}

/// All plugins.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct PluginList {
    /// By name.
    pub plugins: Vec<PluginRow>,
    /// Plugins in the list.
    pub total: usize,
    /// Folders that cannot be loaded.
    pub failed: Vec<FailedPlugin>,
}

/// A plugin in full.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PluginDetail {
    /// As in the list.
    #[serde(flatten)]
    pub row: PluginRow,
    /// What runs its hooks, such as `python`.
    pub runtime: &'static str,
    /// The files of its hooks.
    pub hook_files: BTreeMap<String, String>,
    /// Where it was installed from; empty if it was put there by hand.
    pub source: String,
    /// When it was installed; empty if it was put there by hand.
    pub installed_at: String,
    /// Whether its manifest has a valid signature.
    pub signed: bool,
    /// Whether its manifest asks for the network.
    pub wants_network: bool,
    /// Whether its hooks may use the network.
    pub network: bool,
    /// Plugins that it needs.
    pub plugin_depends: Vec<String>,
    /// Languages that it has a name in.
    pub languages: Vec<String>,
    /// Its settings: type, default and description by key.
    pub config: BTreeMap<String, Value>,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// The state of a plugin.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PluginStatus {
    /// As in the list.
    #[serde(flatten)]
    pub row: PluginRow,
    /// Whether `[context_engine] plugin` names it.
    pub active_as_single: bool,
    /// Its place among the plugins that run, from 0; null if it does not run.
    pub stack_position: Option<usize>,
    /// Whether the program that runs its hooks is installed.
    pub runtime_available: bool,
}

/// Figures of a hook since the plugin was loaded.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HookHealth {
    /// Runs.
    pub calls: u64,
    /// Runs that failed.
    pub errors: u64,
    /// Percent of the runs that failed.
    pub error_rate_pct: f64,
    /// Milliseconds of a run, on average.
    pub avg_elapsed_ms: f64,
    /// Answers from the cache.
    pub cached: u64,
    /// Whether it failed too often and is not called for a while.
    pub circuit_open: bool,
    /// Error of the last run that failed.
    pub last_error: Option<String>,
}

/// The runs of all hooks of a plugin.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PluginHealth {
    /// Its name.
    pub plugin: String,
    /// By hook.
    pub hooks: BTreeMap<String, HookHealth>,
}

/// One run of a hook.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HookTrace {
    /// When it began.
    pub at: String,
    /// Which hook.
    pub hook: &'static str,
    /// For which agent; empty for none.
    pub agent_id: String,
    /// How long it took.
    pub elapsed_ms: f64,
    /// How often it was tried.
    pub tries: u32,
    /// Whether the answer came from the cache.
    pub cached: bool,
    /// Why it failed; null if it did not.
    pub error: Option<String>,
    /// A stable word for that, such as `timed_out`.
    pub code: Option<&'static str>,
}

/// The newest runs of a plugin.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PluginTraces {
    /// Its name.
    pub plugin: String,
    /// The newest first, 100 at most.
    pub traces: Vec<HookTrace>,
}

/// A variable that hooks expect.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExpectedVariable {
    /// What it is for; may be empty.
    pub description: String,
    /// Whether hooks need it.
    pub required: bool,
    /// Whether they get it.
    pub present: bool,
}

/// The environment of the hooks of a plugin.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PluginEnv {
    /// Its name.
    pub plugin: String,
    /// Variables that it sets. Values of names with KEY, SECRET, PASSWORD or TOKEN are `***`.
    pub env: BTreeMap<String, String>,
    /// Variables that it expects.
    pub env_schema: BTreeMap<String, ExpectedVariable>,
    /// Secrets that it asks for, and whether `[context_engine] env_allowed` lets it have them.
    pub allowed_secrets: BTreeMap<String, bool>,
}

/// Errors and warnings about a plugin.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PluginLint {
    /// Its name.
    pub plugin: String,
    /// Whether there are no errors.
    pub ok: bool,
    /// Errors.
    pub errors: Vec<String>,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// A plugin of a registry.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RegistryPlugin {
    /// Name to install it by.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it does.
    pub description: String,
    /// Its author.
    pub author: String,
    /// Its hooks.
    pub hooks: Vec<String>,
    /// Whether a plugin of this name is installed.
    pub installed: bool,
}

/// A registry of plugins.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PluginRegistry {
    /// `registry`, or its repository.
    pub name: String,
    /// Where it is: a URL or a path.
    pub github_repo: String,
    /// By name.
    pub plugins: Vec<RegistryPlugin>,
    /// Why it cannot be read; absent if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What runs hooks on this machine.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RuntimeProbe {
    /// Such as `python`.
    pub runtime: &'static str,
    /// The program; the first that is there, or the first of the names.
    pub launcher: String,
    /// Whether it is installed.
    pub available: bool,
    /// What it says of itself; null if it is not installed, or says nothing.
    pub version: Option<String>,
    /// How to install it.
    pub install_hint: &'static str,
}

/// Whether a plugin can run on this machine.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PluginProbe {
    /// Its name.
    pub name: String,
    /// What runs its hooks.
    pub runtime: &'static str,
    /// Whether that is installed.
    pub runtime_available: bool,
    /// Whether the files of all hooks are there.
    pub hooks_valid: bool,
    /// Programs that it needs and that are not installed, with how to install them.
    pub missing: Vec<String>,
    /// How to install what runs it; empty if that is installed.
    pub install_hint: String,
}

/// The runtimes of this machine, and the plugins that need them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PluginDoctor {
    /// All runtimes.
    pub runtimes: Vec<RuntimeProbe>,
    /// All plugins.
    pub plugins: Vec<PluginProbe>,
}

/// The result of an installation of dependencies.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Dependencies {
    /// Whether all were installed.
    pub success: bool,
    /// The end of what the installer wrote.
    pub output: String,
}

/// A signed plugin.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Signed {
    /// True.
    pub signed: bool,
    /// Its name.
    pub plugin: String,
    /// SHA-256 in hex of its files, which stand in `[integrity]` of its manifest.
    pub hashes: BTreeMap<String, String>,
    /// Ed25519 signature of `plugin.toml`, in base64.
    pub signature: String,
    /// Public key, in hex.
    pub public_key: String,
}

/// A test run of a hook.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HookTest {
    /// The plugin.
    pub plugin: String,
    /// The hook.
    pub hook: &'static str,
    /// Whether it gave an answer.
    pub ok: bool,
    /// The answer; null if it gave none.
    pub output: Value,
    /// Why it gave none.
    pub error: Option<String>,
    /// A stable word for that, such as `timed_out`.
    pub code: Option<&'static str>,
    /// How long it took.
    pub elapsed_ms: f64,
}

/// Whether the processes of a plugin are ready.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Warmed {
    /// Whether they are.
    pub ok: bool,
    /// Why not, or what was done.
    pub message: String,
}
