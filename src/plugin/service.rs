//! The plugins as routes ask for them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use agentsvc_api::http::error::Error;
use agentsvc_api::http::files::FilesError;
use agentsvc_api::plugin::error_codes::{PLUGIN_INVALID, PLUGIN_NOT_FOUND};
use agentsvc_api::plugin::plugins::{
    Dependencies, FailedPlugin, HookTest, PluginDetail, PluginDoctor, PluginEnv, PluginHealth, PluginLint, PluginList,
    PluginRegistry, PluginSource, PluginStatus, PluginTraces, Plugins, PreparedPlugin, RegistryPlugin, Scaffold,
    Signed, Warmed,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::config::ContextEngine;
use super::engine::Engine;
use super::hook::Hook;
use super::install::{PLUGINS, blocking, of_folder, source_of};
use super::library::{Library, PLUGINS_MAX, text_of};
use super::lint::lint;
use super::machine::{self, is_available};
use super::manifest::parse;
use super::plugin::Plugin;
use super::run::{Who, call};
use super::shape::{self, milliseconds};
use super::signing;
use super::told::{Teller, warm};
use crate::kernel::disk;
use crate::kernel::sandbox::config::ExecPolicy;
use crate::kernel::settings::Settings;
use crate::skill_source::folders::check_name;
use crate::skill_source::staging::files;
use crate::skill_source::{Fetcher, RegistryPlace, RegistryUrl};

/// Bytes of the files of a plugin that is exported.
const EXPORT_BYTES_MAX: u64 = 64 << 20;
/// Installations of dependencies and looks at launchers at once.
const MACHINE_MAX: usize = 2;

/// The plugins as routes ask for them.
pub(super) struct Service {
    engine: Arc<Engine>,
    pub(super) library: Arc<Library>,
    pub(super) teller: Arc<Teller>,
    /// Where launchers run that are asked for their versions.
    scratch: PathBuf,
    machine: Semaphore,
}

/// The error of a name that no plugin has.
pub(super) fn missing(name: &str) -> Error {
    let shown: String = name.chars().take(64).collect();
    Error::of(PLUGIN_NOT_FOUND, format!("plugin not found: {shown}"))
}

fn failed(error: std::io::Error) -> Error {
    tracing::error!(%error, "the files of a plugin could not be read or written");
    Error::from(FilesError::Failed)
}

impl Service {
    pub(super) fn new(engine: Arc<Engine>, teller: Arc<Teller>, scratch: PathBuf) -> Self {
        let library = Arc::clone(&engine.library);
        Self { engine, library, teller, scratch, machine: Semaphore::new(MACHINE_MAX) }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.engine.around.settings
    }

    pub(super) fn fetcher(&self) -> Arc<Fetcher> {
        self.settings().get::<Fetcher>()
    }

    fn find(&self, name: &str) -> Result<Arc<Plugin>, Error> {
        let present = self.library.present();
        present.plugins.get(name).cloned().ok_or_else(|| match present.failed.get(name) {
            Some(why) => Error::of(PLUGIN_INVALID, format!("plugin {name:?} cannot be used: {why}")),
            None => missing(name),
        })
    }

    /// The names of the plugins that run, in their order.
    fn in_force(&self) -> Vec<String> {
        let config = self.settings().get::<ContextEngine>();
        let present = self.library.present();
        let named = config.names().filter_map(|name| present.plugins.get(name)).filter(|plugin| plugin.is_enabled);
        let mut stack: Vec<&Arc<Plugin>> = named.collect();
        stack.sort_by_key(|plugin| std::cmp::Reverse(plugin.manifest.rules.priority));
        stack.into_iter().map(|plugin| plugin.name().to_owned()).collect()
    }

    fn is_active(&self, name: &str) -> bool {
        self.in_force().iter().any(|active| active == name)
    }

    /// The folder of a plugin, also of one that cannot be used.
    fn folder(&self, name: &str) -> Result<PathBuf, Error> {
        self.removable(name)?;
        Ok(self.library.folders.path(name))
    }

    async fn registry(&self) -> PluginRegistry {
        let github_repo = self.settings().get::<RegistryUrl>().url.to_string();
        let found = self.settings().get::<RegistryPlace>().find().await;
        let library = Arc::clone(&self.library);
        let read = match found {
            Err(error) => Err(Error::from(error)),
            Ok(place) => blocking(move || Ok(listed(&library, &place.join(PLUGINS)))).await,
        };
        let (plugins, error) = match read {
            Ok(plugins) => (plugins, None),
            Err(error) => (Vec::new(), Some(error.message().to_owned())),
        };
        PluginRegistry { name: "registry".to_owned(), github_repo, plugins, error }
    }

    async fn tested(&self, name: String, hook: String, input: Option<Value>, agent: String) -> Result<HookTest, Error> {
        let plugin = self.find(&name)?;
        let known = Hook::parse(&hook).filter(|hook| plugin.hooks.contains_key(hook));
        let hook = known.ok_or_else(|| {
            let names = plugin.manifest.hook_names().join(", ");
            Error::bad_field("hook", format!("hook: plugin {name:?} has no hook {hook:?}; it has {names}"))
        })?;
        let input = input.unwrap_or_else(|| example(hook, &agent));
        let message = input["message"].as_str().unwrap_or_default().to_owned();
        let begun = std::time::Instant::now();
        let who = Who { name: agent.clone(), agent, message, holder: None };
        let result = call(&self.engine.around, &plugin, hook, &input, &who).await;
        let elapsed_ms = milliseconds(begun.elapsed());
        let (ok, output, error, code) = match result {
            Ok(output) => (true, output, None, None),
            Err(fault) => (false, Value::Null, Some(fault.to_string()), Some(fault.code())),
        };
        Ok(HookTest { plugin: name, hook: hook.as_str(), ok, output, error, code, elapsed_ms })
    }

    async fn warmed(&self, names: Option<Vec<String>>) -> BTreeMap<String, Warmed> {
        let names = names.unwrap_or_else(|| self.in_force());
        let mut results = BTreeMap::new();
        for name in names {
            let warmed = match self.find(&name) {
                Err(error) => Warmed { ok: false, message: error.message().to_owned() },
                Ok(plugin) if !plugin.manifest.rules.is_persistent => {
                    Warmed { ok: true, message: "nothing to start: its hooks run once for each call".to_owned() }
                }
                Ok(plugin) => match warm(&self.engine, &plugin).await {
                    Ok(()) => Warmed { ok: true, message: "its processes are ready".to_owned() },
                    Err(fault) => Warmed { ok: false, message: fault.to_string() },
                },
            };
            results.insert(name, warmed);
        }
        results
    }
}

/// What a hook is given where a client does not say.
fn example(hook: Hook, agent: &str) -> Value {
    let said = json!([{ "role": "user", "content": "Hello", "pinned": false }]);
    let mut input = match hook {
        Hook::Ingest => json!({ "session_id": "test", "message": "Hello, this is a test message.", "peer_id": null }),
        Hook::AfterTurn => json!({ "session_id": "test", "messages": said }),
        Hook::Bootstrap => {
            json!({ "context_window_tokens": null, "stable_prefix_mode": true, "max_recall_results": 50 })
        }
        Hook::Assemble => json!({ "system_prompt": "", "messages": said, "context_window_tokens": 8_000 }),
        Hook::Compact => {
            json!({ "messages": said, "model": "test", "context_window_tokens": 8_000, "token_pressure": 0.9 })
        }
        Hook::TransformToolResult => json!({
            "tool_name": "test", "tool_use_id": "1", "args": {}, "input": {}, "result": "text", "content": "text",
            "is_error": false, "status": "ok",
        }),
        Hook::PrepareSubagent | Hook::MergeSubagent => json!({ "parent_id": agent, "child_id": "child" }),
        Hook::OnEvent => json!({ "event": "test", "data": {} }),
    };
    input["type"] = hook.as_str().into();
    input["agent_id"] = agent.into();
    input
}

/// The plugins of a registry. What cannot be read is left out.
fn listed(library: &Library, plugins: &std::path::Path) -> Vec<RegistryPlugin> {
    let present = library.present();
    let folders = disk::there(disk::entries(plugins)).ok().flatten().unwrap_or_default();
    let read = folders.iter().take(PLUGINS_MAX).filter_map(|folder| {
        let manifest = parse(&text_of(folder).ok()?).ok()?;
        let hooks = manifest.hook_names().into_iter().map(str::to_owned).collect();
        let installed = present.plugins.contains_key(&manifest.name);
        let (name, version) = (manifest.name, manifest.version);
        let (description, author) = (manifest.description, manifest.author);
        Some(RegistryPlugin { name, version, description, author, hooks, installed })
    });
    let mut found: Vec<_> = read.collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

impl Plugins for Service {
    fn list(&self) -> PluginList {
        let (present, active) = (self.library.present(), self.in_force());
        let rows =
            present.plugins.values().map(|plugin| shape::row(plugin, active.iter().any(|name| name == plugin.name())));
        let plugins: Vec<_> = rows.collect();
        let failed = present.failed.iter().map(|(name, why)| FailedPlugin { name: name.clone(), error: why.clone() });
        PluginList { total: plugins.len(), plugins, failed: failed.collect() }
    }

    fn get(&self, name: &str) -> Result<PluginDetail, Error> {
        Ok(shape::detail(&*self.find(name)?, self.is_active(name)))
    }

    fn status(&self, name: &str) -> Result<PluginStatus, Error> {
        let plugin = self.find(name)?;
        let stack = self.in_force();
        let place = stack.iter().position(|active| active == name);
        let path = self.settings().get::<ExecPolicy>().path.clone();
        Ok(PluginStatus {
            row: shape::row(&plugin, place.is_some()),
            active_as_single: place.is_some() && self.settings().get::<ContextEngine>().plugin.as_deref() == Some(name),
            stack_position: place,
            runtime_available: is_available(&path, plugin.manifest.runtime),
        })
    }

    fn health(&self, name: &str) -> Result<PluginHealth, Error> {
        Ok(shape::health(&*self.find(name)?))
    }

    fn traces(&self, name: &str) -> Result<PluginTraces, Error> {
        Ok(shape::traces(&*self.find(name)?))
    }

    fn env(&self, name: &str) -> Result<PluginEnv, Error> {
        Ok(shape::env(&self.engine.around, &*self.find(name)?))
    }

    fn lint(&self, name: &str) -> Result<PluginLint, Error> {
        let mut found = lint(&self.folder(name)?, Some(name));
        if let Some(why) = self.library.present().failed.get(name).filter(|why| !found.errors.contains(why)) {
            found.errors.push(why.clone());
        }
        let (errors, warnings) = (found.errors, found.warnings);
        Ok(PluginLint { plugin: name.to_owned(), ok: errors.is_empty(), errors, warnings })
    }

    fn export(&self, name: &str) -> Result<Vec<u8>, Error> {
        let folder = self.folder(name)?;
        let list = files(&folder).map_err(|error| of_folder(error, name))?;
        if list.iter().map(|file| file.bytes).sum::<u64>() > EXPORT_BYTES_MAX {
            return Err(Error::of(PLUGIN_INVALID, format!("the plugin has more than {EXPORT_BYTES_MAX} bytes")));
        }
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        for file in list {
            let mut opened = disk::open(&folder.join(&file.path)).map_err(failed)?;
            archive.append_file(format!("{name}/{}", file.path), &mut opened).map_err(failed)?;
        }
        archive.into_inner().and_then(GzEncoder::finish).map_err(failed)
    }

    fn enable(&self, name: &str, is_enabled: bool) -> Result<(), Error> {
        self.removable(name)?;
        let _changing = self.library.changing.lock();
        let mut state = self.library.state(name).map_err(failed)?;
        state.is_disabled = !is_enabled;
        self.library.keep_state(name, &state).map_err(failed)?;
        self.library.read_again(name);
        self.teller.changed();
        Ok(())
    }

    fn reload(&self, name: &str) -> Result<(), Error> {
        // A folder that was put there by hand is not known yet.
        if check_name(name).is_err() || !self.library.folders.path(name).is_dir() {
            self.removable(name)?;
        }
        {
            let _changing = self.library.changing.lock();
            self.library.read_again(name);
        }
        self.teller.changed();
        self.find(name).map(drop)
    }

    fn sign(&self, name: &str) -> Result<Signed, Error> {
        let folder = self.folder(name)?;
        let _changing = self.library.changing.lock();
        let signed = signing::sign(&self.library, name, &folder)?;
        self.library.read_again(name);
        self.teller.changed();
        Ok(signed)
    }

    fn removable(&self, name: &str) -> Result<(), Error> {
        let present = self.library.present();
        let is_there = present.plugins.contains_key(name) || present.failed.contains_key(name);
        if is_there { Ok(()) } else { Err(missing(name)) }
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        self.removable(name)?;
        let lock = self.library.folders.lock(name).map_err(|error| of_folder(error, name))?;
        let _changing = self.library.changing.lock();
        lock.remove().map_err(|error| of_folder(error, name))?;
        self.library.read_again(name);
        self.library.forget(name).map_err(failed)?;
        self.teller.changed();
        Ok(())
    }

    fn scaffold(&self, scaffold: Scaffold) -> Result<Box<dyn PreparedPlugin>, Error> {
        self.scaffolded(scaffold)
    }

    fn prepare(
        self: Arc<Self>,
        source: PluginSource,
        network: bool,
    ) -> BoxFuture<'static, Result<Box<dyn PreparedPlugin>, Error>> {
        self.fetched(source, None, network).boxed()
    }

    fn upgrade(
        self: Arc<Self>,
        name: String,
        source: Option<PluginSource>,
        network: Option<bool>,
    ) -> BoxFuture<'static, Result<Box<dyn PreparedPlugin>, Error>> {
        async move {
            self.removable(&name)?;
            let (library, plugin) = (Arc::clone(&self.library), name.clone());
            let state = blocking(move || library.state(&plugin).map_err(failed)).await?;
            let source = source.or_else(|| source_of(&state.source)).ok_or_else(|| {
                Error::bad_field("source", "source: missing; the plugin was not installed from a source")
            })?;
            let present = self.library.present();
            let had_it = || state.network.unwrap_or_else(|| present.plugins.get(&name).is_some_and(|one| one.network));
            let network = network.unwrap_or_else(had_it);
            self.fetched(source, Some(name), network).await
        }
        .boxed()
    }

    fn registries(self: Arc<Self>) -> BoxFuture<'static, Vec<PluginRegistry>> {
        async move { vec![self.registry().await] }.boxed()
    }

    fn doctor(self: Arc<Self>) -> BoxFuture<'static, PluginDoctor> {
        async move {
            // It is never closed.
            let _place = self.machine.acquire().await;
            let plugins: Vec<_> = self.library.present().plugins.values().cloned().collect();
            machine::doctor(&self.engine.around, &plugins, &self.scratch).await
        }
        .boxed()
    }

    fn install_deps(self: Arc<Self>, name: String) -> BoxFuture<'static, Result<Dependencies, Error>> {
        async move {
            let plugin = self.find(&name)?;
            let _place = self.machine.acquire().await;
            let done = machine::install(&self.engine.around, &plugin).await;
            // What stays has read its modules before they were there.
            plugin.stop();
            Ok(done)
        }
        .boxed()
    }

    fn test_hook(
        self: Arc<Self>,
        name: String,
        hook: String,
        input: Option<Value>,
        agent: String,
    ) -> BoxFuture<'static, Result<HookTest, Error>> {
        async move { self.tested(name, hook, input, agent).await }.boxed()
    }

    fn prewarm(self: Arc<Self>, names: Option<Vec<String>>) -> BoxFuture<'static, BTreeMap<String, Warmed>> {
        async move { self.warmed(names).await }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::engine::{SIDECAR, UNNAMED};

    #[test]
    fn examples_have_what_hooks_are_given() {
        for hook in Hook::ALL {
            let input = example(hook, "a");
            assert_eq!((&input["type"], &input["agent_id"]), (&json!(hook.as_str()), &json!("a")));
        }
        // No folder can take their names.
        assert!(![UNNAMED, SIDECAR].iter().any(|name| check_name(name).is_ok()));
    }
}
