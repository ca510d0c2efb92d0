//! The context engine: what plugins do in turns (facts 3.3). Every call ends in bounded time and none touches the world: what
//! came of it reaches the world with the outcome of the call that it belongs to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agentsvc_api::session::content::Content;
use arc_swap::ArcSwap;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::config::{ContextEngine, Engine as EngineKind, EngineHooks};
use super::fault::Fault;
use super::hook::Hook;
use super::library::Library;
use super::manifest::{Manifest, OnFailure};
use super::plugin::{Around as Beside, Kind, Plugin};
use super::run::{Who, call};
use super::runtime::Runtime;
use crate::kernel::sandbox::Commands;
use crate::kernel::settings::Settings;
use crate::kernel::vault::Vault;
use crate::skill::config::SkillSettings;

/// Bytes of one memory of a plugin.
const MEMORY_BYTES_MAX: usize = 8 << 10;
/// Memories of one plugin for a turn.
const MEMORIES_MAX: usize = 50;
/// Name of the hooks that the configuration names by their paths.
pub(crate) const UNNAMED: &str = "_hooks";
/// Name of the sidecar.
pub(crate) const SIDECAR: &str = "_sidecar";

/// What runs of hooks need of the daemon.
pub(crate) struct Around {
    pub(super) commands: Commands,
    pub(crate) settings: Settings,
    vault: Vault,
    numbers: AtomicU64,
}

impl Around {
    /// A number that no other request of a sidecar has.
    pub(super) fn next(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A secret of the vault, else a variable of the daemon. Blocks on the disk.
    pub(super) fn secret(&self, name: &str) -> Option<String> {
        let sealed = self.vault.get(name).ok().flatten();
        let sealed = sealed.and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
        sealed.or_else(|| std::env::var(name).ok())
    }

    /// Is the variable a secret, or called like one?
    pub(super) fn is_secret(&self, name: &str) -> bool {
        self.commands.is_secret(name) || self.settings.get::<SkillSettings>().is_denied(name)
    }
}

/// What hooks of the configuration are, with the part of it that they were made of.
#[derive(Default)]
struct Configured {
    of: Option<(EngineHooks, Vec<Box<str>>)>,
    plugins: BTreeMap<&'static str, Arc<Plugin>>,
}

/// The context engine.
pub(crate) struct Engine {
    pub(crate) around: Arc<Around>,
    pub(crate) library: Arc<Library>,
    pub(super) content: Arc<dyn Content>,
    data: PathBuf,
    configured: ArcSwap<Configured>,
}

/// A memory that a plugin brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) plugin: String,
    pub(crate) content: String,
}

/// A hook failed, and its plugin wants the turn to fail: a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Aborted(pub(crate) String);

impl Engine {
    pub(super) fn new(
        (commands, settings, vault): (Commands, Settings, Vault),
        library: Arc<Library>,
        content: Arc<dyn Content>,
        data_dir: &Path,
    ) -> Arc<Self> {
        let around = Arc::new(Around { commands, settings, vault, numbers: AtomicU64::new(0) });
        let (data, configured) = (data_dir.join("plugins"), ArcSwap::default());
        Arc::new(Self { around, library, content, data, configured })
    }

    /// Does the configuration name anything? Costs next to nothing.
    pub(crate) fn is_used(&self) -> bool {
        let config = self.around.settings.get::<ContextEngine>();
        let has_hooks = config.hooks.ingest.is_some() || config.hooks.after_turn.is_some();
        config.names().next().is_some() || has_hooks || config.engine == EngineKind::Sidecar
    }

    /// What takes part in turns, in order: the sidecar, the hooks of the configuration, and its plugins by their priority.
    pub(crate) async fn stack(&self) -> Vec<Arc<Plugin>> {
        if !self.is_used() {
            return Vec::new();
        }
        let config = self.around.settings.get::<ContextEngine>();
        let mut stack: Vec<Arc<Plugin>> = self.configured(&config).plugins.values().cloned().collect();
        let mut named = Vec::new();
        if config.names().next().is_some() {
            let catalog = self.library.catalog().await;
            named.extend(
                config.names().filter_map(|name| catalog.plugins.get(name)).filter(|one| one.is_enabled).cloned(),
            );
        }
        named.sort_by_key(|plugin| std::cmp::Reverse(plugin.manifest.rules.priority));
        stack.extend(named);
        stack
    }

    /// The stack, as far as it has this hook.
    pub(super) async fn with(&self, hook: Hook) -> Vec<Arc<Plugin>> {
        let mut stack = self.stack().await;
        stack.retain(|plugin| plugin.hooks.contains_key(&hook));
        stack
    }

    /// What the configuration itself says to run: made once, until it changes.
    fn configured(&self, config: &ContextEngine) -> Arc<Configured> {
        let words = if config.engine == EngineKind::Sidecar { config.sidecar_command.clone() } else { Vec::new() };
        let of = Some((config.hooks.clone(), words.clone()));
        let present = self.configured.load_full();
        if present.of == of {
            return present;
        }
        let mut plugins = BTreeMap::new();
        let hooks = [(Hook::Ingest, &config.hooks.ingest), (Hook::AfterTurn, &config.hooks.after_turn)];
        let paths: BTreeMap<Hook, String> =
            hooks.into_iter().filter_map(|(hook, path)| Some((hook, path.as_deref()?.to_owned()))).collect();
        if let Some(first) = paths.values().next() {
            let folder = Path::new(first).parent().unwrap_or(Path::new("/")).to_owned();
            let manifest = Manifest {
                name: UNNAMED.to_owned(),
                runtime: Runtime::of(&config.hooks.runtime).unwrap_or_default(),
                hooks: paths,
                ..Manifest::default()
            };
            self.add(&mut plugins, UNNAMED, manifest, (Kind::Files, folder));
        }
        if !words.is_empty() {
            let hooks = Hook::ALL.into_iter().map(|hook| (hook, String::new())).collect();
            let manifest = Manifest { name: SIDECAR.to_owned(), hooks, ..Manifest::default() };
            self.add(&mut plugins, SIDECAR, manifest, (Kind::Sidecar(words), PathBuf::from("/")));
        }
        let made = Arc::new(Configured { of, plugins });
        for plugin in self.configured.swap(Arc::clone(&made)).plugins.values() {
            plugin.stop();
        }
        made
    }

    fn add(
        &self,
        plugins: &mut BTreeMap<&'static str, Arc<Plugin>>,
        name: &'static str,
        manifest: Manifest,
        (kind, folder): (Kind, PathBuf),
    ) {
        let home = self.data.join(name).join("home");
        let source = "configuration".to_owned();
        let beside = Beside { kind, folder, home, is_enabled: true, source, ..Beside::default() };
        match Plugin::new(manifest, beside) {
            Ok(plugin) => {
                plugins.insert(name, Arc::new(plugin));
            }
            Err(why) => tracing::error!(name, why, "hooks of the configuration cannot be used"),
        }
    }

    /// Calls the hook of one plugin in a turn. `None`: the turn goes on without.
    ///
    /// # Errors
    /// [`Aborted`].
    pub(super) async fn ask(
        &self,
        plugin: &Arc<Plugin>,
        hook: Hook,
        input: &Value,
        who: &Who,
    ) -> Result<Option<Value>, Aborted> {
        if !plugin.is_for(hook, who) {
            return Ok(None);
        }
        match call(&self.around, plugin, hook, input, who).await {
            Ok(answer) => Ok(Some(answer)),
            Err(fault) => failed(plugin, hook, &fault).map(|()| None),
        }
    }

    /// What plugins bring for the first call of a turn. All are asked at once; what they bring stands in their order.
    ///
    /// # Errors
    /// [`Aborted`].
    pub(crate) async fn ingest(&self, who: &Who, session: &str, peer: Option<&str>) -> Result<Vec<Memory>, Aborted> {
        let input = json!({
            "type": "ingest", "agent_id": who.agent, "session_id": session, "message": who.message, "peer_id": peer,
        });
        let stack = self.with(Hook::Ingest).await;
        let asked = stack.iter().map(|plugin| self.ask(plugin, Hook::Ingest, &input, who));
        let mut memories = Vec::new();
        for (plugin, answer) in stack.iter().zip(join_all(asked).await) {
            let Some(answer) = answer? else { continue };
            let brought = match memories_of(plugin.name(), &answer) {
                Ok(brought) => brought,
                Err(why) => {
                    failed(plugin, Hook::Ingest, &Fault::Wrong(why))?;
                    continue;
                }
            };
            memories.extend(brought);
        }
        Ok(memories)
    }

    /// What the first plugin that has something gives for a hook whose answer is one.
    ///
    /// # Errors
    /// [`Aborted`].
    pub(crate) async fn first<T>(
        &self,
        hook: Hook,
        input: &Value,
        who: &Who,
        read: impl Fn(&Value) -> Result<Option<T>, String>,
    ) -> Result<Option<(String, T)>, Aborted> {
        for plugin in self.with(hook).await {
            let Some(answer) = self.ask(&plugin, hook, input, who).await? else { continue };
            match read(&answer) {
                Ok(Some(found)) => return Ok(Some((plugin.name().to_owned(), found))),
                Ok(None) => {}
                // What breaks the conversation is never used; the daemon's own way goes on, whatever the plugin wants.
                Err(why) => {
                    let (name, hook) = (plugin.name(), hook.as_str());
                    tracing::warn!(
                        plugin = name,
                        hook,
                        why,
                        "the answer of a hook cannot be used; the default is used"
                    );
                }
            }
        }
        Ok(None)
    }

    /// Has anything that takes part in turns this hook? Before the plugins are read, each that is named may have it.
    pub(crate) fn wants(&self, hook: Hook) -> bool {
        if !self.is_used() {
            return false;
        }
        let config = self.around.settings.get::<ContextEngine>();
        if self.configured(&config).plugins.values().any(|plugin| plugin.hooks.contains_key(&hook)) {
            return true;
        }
        let catalog = self.library.present();
        let has = |plugin: &Arc<Plugin>| plugin.is_enabled && plugin.hooks.contains_key(&hook);
        let is_named = config.names().next().is_some();
        is_named && (!self.library.is_read() || config.names().filter_map(|name| catalog.plugins.get(name)).any(has))
    }
}

/// What becomes of a turn when a hook failed.
fn failed(plugin: &Plugin, hook: Hook, fault: &Fault) -> Result<(), Aborted> {
    let (name, hook) = (plugin.name(), hook.as_str());
    match plugin.manifest.rules.on_failure {
        // What cannot run here at all is not the turn's fault (spec 2, Plugins).
        _ if matches!(fault, Fault::LauncherNotFound(_)) => {
            tracing::warn!(plugin = name, hook, %fault, "a hook cannot run; the default context engine is used");
        }
        OnFailure::Abort => return Err(Aborted(format!("plugin {name:?} failed at {hook}: {fault}"))),
        OnFailure::Warn => tracing::warn!(plugin = name, hook, %fault, "a hook failed; the turn goes on without"),
        OnFailure::Skip => tracing::debug!(plugin = name, hook, %fault, "a hook failed; the turn goes on without"),
    }
    Ok(())
}

/// The memories of an answer. Its `type` does not matter, and some write texts for tables.
fn memories_of(plugin: &str, answer: &Value) -> Result<Vec<Memory>, String> {
    let list = match answer.get("memories") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(list) => list.as_array().ok_or("memories: must be a list")?,
    };
    let mut memories = Vec::new();
    for item in list.iter().take(MEMORIES_MAX) {
        let content = item.as_str().or_else(|| item["content"].as_str());
        let content = content.ok_or("memories: each needs `content`")?.trim();
        if !content.is_empty() {
            let content = content[..content.floor_char_boundary(MEMORY_BYTES_MAX)].to_owned();
            memories.push(Memory { plugin: plugin.to_owned(), content });
        }
    }
    Ok(memories)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_count_whatever_the_type_says() {
        let read = |answer: Value| -> Result<Vec<String>, String> {
            memories_of("p", &answer).map(|list| list.into_iter().map(|one| one.content).collect())
        };
        let texts =
            |list: &[&str]| -> Result<Vec<String>, String> { Ok(list.iter().map(|text| (*text).to_owned()).collect()) };
        assert_eq!(read(json!({ "memories": [{ "content": " a " }, "b", { "content": "" }] })), texts(&["a", "b"]));
        assert_eq!(read(json!({ "type": "other", "memories": [] })), texts(&[]));
        assert_eq!(read(json!({})), texts(&[]));
        assert!(read(json!({ "memories": 3 })).unwrap_err().contains("memories"));
        assert!(read(json!({ "memories": [{ "text": "a" }] })).unwrap_err().contains("content"));
        let many = json!({ "memories": vec!["x".repeat(20_000); 100] });
        let many: Vec<String> = read(many).unwrap();
        assert!(many.len() == MEMORIES_MAX && many[0].len() == MEMORY_BYTES_MAX);
    }
}
