//! Plugins as the daemon has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

pub use super::shapes::{
    Dependencies, ExpectedVariable, FailedPlugin, HookHealth, HookTest, HookTrace, PluginDetail, PluginDoctor,
    PluginEnv, PluginHealth, PluginLint, PluginList, PluginProbe, PluginRegistry, PluginRow, PluginStatus,
    PluginTraces, RegistryPlugin, RuntimeProbe, Signed, Warmed,
};
use crate::http::error::Error;

/// What is about to be installed.
#[derive(Clone, Debug)]
pub struct PluginDescription {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Where it comes from.
    pub source: String,
    /// Will its hooks be allowed to use the network?
    pub network: bool,
    /// What was noticed, in sentences.
    pub warnings: Vec<String>,
}

/// Where a plugin comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginSource {
    /// Its name in the registry.
    Registry(String),
    /// The absolute path of a folder or an archive.
    Local(String),
    /// A Git repository, a branch of it, and the folder in it.
    Git {
        /// https URL.
        url: String,
        /// Default: the repository's own.
        branch: Option<String>,
        /// Default: the only plugin of the repository.
        path: Option<String>,
    },
}

/// A plugin that passed its checks.
pub trait PreparedPlugin: Send + Sync {
    /// What it is.
    fn description(&self) -> PluginDescription;

    /// Puts it in its place; gives its folder. Blocks on the disk.
    ///
    /// # Errors
    /// One of its name was installed meanwhile, or the disk failed.
    fn put(self: Box<Self>) -> Result<String, Error>;
}

/// What `POST /api/plugins/scaffold` makes.
#[derive(Clone, Debug)]
pub struct Scaffold {
    /// The new plugin's name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What runs its hooks.
    pub runtime: String,
    /// Its hooks.
    pub hooks: Vec<String>,
}

/// The plugins of this home. Calls that give no future block on the disk.
pub trait Plugins: Send + Sync {
    /// All.
    fn list(&self) -> PluginList;

    /// One.
    ///
    /// # Errors
    /// `plugin_not_found`, as of all others.
    fn get(&self, name: &str) -> Result<PluginDetail, Error>;

    /// Its place in turns.
    ///
    /// # Errors
    /// [`Error`].
    fn status(&self, name: &str) -> Result<PluginStatus, Error>;

    /// Counts of its hooks.
    ///
    /// # Errors
    /// [`Error`].
    fn health(&self, name: &str) -> Result<PluginHealth, Error>;

    /// The newest runs.
    ///
    /// # Errors
    /// [`Error`].
    fn traces(&self, name: &str) -> Result<PluginTraces, Error>;

    /// Variables of its hooks.
    ///
    /// # Errors
    /// [`Error`].
    fn env(&self, name: &str) -> Result<PluginEnv, Error>;

    /// What is wrong with its files, also of one that cannot be used.
    ///
    /// # Errors
    /// [`Error`].
    fn lint(&self, name: &str) -> Result<PluginLint, Error>;

    /// Its files as a tar.gz archive.
    ///
    /// # Errors
    /// [`Error`].
    fn export(&self, name: &str) -> Result<Vec<u8>, Error>;

    /// Enables or disables it.
    ///
    /// # Errors
    /// [`Error`].
    fn enable(&self, name: &str, is_enabled: bool) -> Result<(), Error>;

    /// Reads its files again.
    ///
    /// # Errors
    /// `plugin_invalid`.
    fn reload(&self, name: &str) -> Result<(), Error>;

    /// Writes the sums of its files into its manifest and signs that.
    ///
    /// # Errors
    /// [`Error`].
    fn sign(&self, name: &str) -> Result<Signed, Error>;

    /// Is there a plugin of this name, or a folder that cannot be used?
    ///
    /// # Errors
    /// [`Error`].
    fn removable(&self, name: &str) -> Result<(), Error>;

    /// Removes a plugin with its private home.
    ///
    /// # Errors
    /// [`Error`].
    fn remove(&self, name: &str) -> Result<(), Error>;

    /// Makes a plugin from templates, to be put in its place.
    ///
    /// # Errors
    /// [`Error`].
    fn scaffold(&self, scaffold: Scaffold) -> Result<Box<dyn PreparedPlugin>, Error>;

    /// Fetches and checks a plugin. Its hooks may use the network only with `network`.
    fn prepare(
        self: Arc<Self>,
        source: PluginSource,
        network: bool,
    ) -> BoxFuture<'static, Result<Box<dyn PreparedPlugin>, Error>>;

    /// Fetches a plugin that is installed again from where it came, or from `source`; it takes the place of the present one.
    /// Without `network`, its hooks may use the network if those of the present one might.
    fn upgrade(
        self: Arc<Self>,
        name: String,
        source: Option<PluginSource>,
        network: Option<bool>,
    ) -> BoxFuture<'static, Result<Box<dyn PreparedPlugin>, Error>>;

    /// The registries, with their plugins.
    fn registries(self: Arc<Self>) -> BoxFuture<'static, Vec<PluginRegistry>>;

    /// What plugins need of this machine.
    fn doctor(self: Arc<Self>) -> BoxFuture<'static, PluginDoctor>;

    /// Installs what its manifest requires into its private home.
    fn install_deps(self: Arc<Self>, name: String) -> BoxFuture<'static, Result<Dependencies, Error>>;

    /// Runs a hook.
    fn test_hook(
        self: Arc<Self>,
        name: String,
        hook: String,
        input: Option<Value>,
        agent: String,
    ) -> BoxFuture<'static, Result<HookTest, Error>>;

    /// Starts the processes of plugins that stay; without names, of all that run in turns.
    fn prewarm(self: Arc<Self>, names: Option<Vec<String>>) -> BoxFuture<'static, BTreeMap<String, Warmed>>;
}
