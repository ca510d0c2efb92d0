//! A plugin as it is loaded: its manifest, its folder, and what is known of the runs of its hooks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use agentsvc_components::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;

use super::health::{Breakdown, Counts, Traces};
use super::hook::Hook;
use super::manifest::{Manifest, Schemas};
use super::memo::Memo;
use super::process::Pool;
use crate::tool::toolset::InputSchema;

/// What starts its hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Files, by the runtime of the manifest.
    #[default]
    Files,
    /// One program of the operator for all hooks, with its arguments.
    Sidecar(Vec<Box<str>>),
}

/// A plugin.
pub(crate) struct Plugin {
    pub(crate) manifest: Manifest,
    pub(crate) kind: Kind,
    /// Its files; no hook changes them.
    pub(crate) folder: PathBuf,
    /// What is its own: hooks may change that, and it outlives them.
    pub(crate) home: PathBuf,
    /// Its hooks run in turns, if the configuration names it.
    pub(crate) is_enabled: bool,
    /// Its hooks may use the network.
    pub(crate) network: bool,
    /// When and from where it was installed; empty for one that was put there by hand.
    pub(crate) source: String,
    pub(crate) installed_at: String,
    /// A signature of its manifest was verified.
    pub(crate) is_signed: bool,
    pub(crate) hooks: BTreeMap<Hook, HookState>,
    pub(crate) traces: Traces,
}

/// One hook of it.
pub(crate) struct HookState {
    /// Its file, from the folder on.
    pub(crate) file: String,
    pub(super) pool: Arc<Pool>,
    pub(super) breaker: Mutex<Breakdown>,
    pub(crate) counts: Mutex<Counts>,
    pub(super) memo: Memo,
    pub(super) input: Option<Arc<InputSchema>>,
    pub(super) output: Option<Arc<InputSchema>>,
}

/// What belongs to a plugin beside its manifest.
#[derive(Default)]
pub(super) struct Around {
    pub(super) kind: Kind,
    pub(super) folder: PathBuf,
    pub(super) home: PathBuf,
    pub(super) is_enabled: bool,
    pub(super) network: bool,
    pub(super) source: String,
    pub(super) installed_at: String,
    pub(super) is_signed: bool,
}

impl Plugin {
    /// A plugin without runs.
    ///
    /// # Errors
    /// A sentence: a schema cannot be read.
    pub(super) fn new(manifest: Manifest, around: Around) -> Result<Self, String> {
        let Around { kind, folder, home, is_enabled, network, source, installed_at, is_signed } = around;
        let shared = Arc::new(Pool::single());
        let mut hooks = BTreeMap::new();
        for (hook, file) in &manifest.hooks {
            let Schemas { input, output } = manifest.schemas.get(hook).cloned().unwrap_or_default();
            let pool = if kind == Kind::Files { Arc::default() } else { Arc::clone(&shared) };
            let state = HookState {
                file: file.clone(),
                pool,
                breaker: Mutex::default(),
                counts: Mutex::default(),
                memo: Memo::default(),
                input: compiled(*hook, "input", input)?,
                output: compiled(*hook, "output", output)?,
            };
            hooks.insert(*hook, state);
        }
        let traces = Traces::default();
        Ok(Self { manifest, kind, folder, home, is_enabled, network, source, installed_at, is_signed, hooks, traces })
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.manifest.name
    }

    /// Are the files of all hooks there?
    pub(crate) fn are_hooks_valid(&self) -> bool {
        self.manifest.hooks.values().all(|file| self.folder.join(file).is_file())
    }

    /// Ends the processes that wait for calls.
    pub(crate) fn stop(&self) {
        self.hooks.values().for_each(|state| state.pool.clear());
    }
}

/// The part of a schema that values are held against: whoever wrote the plugin must not keep a thread busy.
fn compiled(hook: Hook, which: &str, schema: Option<Value>) -> Result<Option<Arc<InputSchema>>, String> {
    let wrong = |why| format!("hook_schemas.{}.{which}: {why}", hook.as_str());
    schema.map(|schema| InputSchema::of_stranger(&schema).map(Arc::new).map_err(wrong)).transpose()
}

/// Now, for what is noted of runs.
pub(super) fn now() -> Timestamp {
    Timestamp(chrono::Utc::now().timestamp_millis())
}
