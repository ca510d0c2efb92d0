//! Definitions of hands in files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use agentsvc_api::Api;
use agentsvc_api::hand::hands::{
    DepResult, HandError, HandSource, HandSummary, Hands, PreparedHand, Reloaded, StoredHand,
};
use agentsvc_api::http::files::FilesError;
use agentsvc_api::tool::toolbox::Toolbox;
use agentsvc_components::Refusal;
use agentsvc_components::kernel::limit::MANIFEST_BYTES_MAX;
use agentsvc_components::manifest::Capabilities;
use agentsvc_systems::hand::definition::{HandDefinition, Requirement, parse};
use agentsvc_systems::hand::error_codes::HANDS_FULL;
use agentsvc_systems::hand::limits::HANDS_MAX;
use agentsvc_systems::hand::prepare::Around;
use agentsvc_systems::kernel::glob;
use agentsvc_systems::manifest;
use futures_util::future::BoxFuture;
use parking_lot::{Condvar, Mutex};

use super::config;
use super::deps::Installer;
use super::programs::Programs;
use super::texts::{HAND_FILE, Stamp, Texts, stamp, text_of};
use crate::kernel::disk;
use crate::kernel::domain::Opening;
use crate::kernel::settings::Settings;
use crate::kernel::vault::Vault;

/// How the names of folders begin that are not complete, or about to go.
pub(super) const STAGING: &str = ".staging-";
const REMOVING: &str = ".removing-";
/// How long a request waits after a start until the hands were read.
const READ_WAIT: Duration = Duration::from_secs(10);
/// The name under which secrets of settings are sealed.
pub(crate) const SEALED_AS: &str = "hand";

/// The hands of a home.
pub(super) struct HandFiles {
    pub(super) dir: PathBuf,
    agent_types: PathBuf,
    pub(super) settings: Settings,
    vault: Vault,
    api: Weak<Api>,
    programs: Programs,
    installer: Installer,
    /// Held while files change, so that no change is lost between two others.
    pub(super) changing: Mutex<()>,
    /// What was read; `None` until it was read for the first time.
    known: Mutex<Option<Known>>,
    read_once: Condvar,
}

/// Lets those go who wait for the hands, when the thread that reads them ends.
struct Told<'f>(&'f HandFiles);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.known.lock().get_or_insert_default();
        self.0.read_once.notify_all();
    }
}

/// What was read of all folders.
#[derive(Default)]
pub(super) struct Known {
    pub(super) by_id: BTreeMap<String, Entry>,
    failed: BTreeMap<String, String>,
}

/// What was read of one folder.
#[derive(Clone)]
pub(super) struct Entry {
    folder: String,
    stamp: Stamp,
    summary: Arc<HandSummary>,
}

impl HandFiles {
    pub(super) fn new(opening: &Opening<'_>) -> Arc<Self> {
        let root = opening.home.root();
        Arc::new(Self {
            dir: root.join("hands"),
            agent_types: opening.home.agent_types_dir(),
            settings: opening.settings.clone(),
            vault: opening.vault.clone(),
            api: Arc::downgrade(opening.api),
            programs: Programs::new(opening.settings.clone()),
            installer: Installer::default(),
            changing: Mutex::new(()),
            known: Mutex::new(None),
            read_once: Condvar::new(),
        })
    }

    /// Reads all hands in a thread of its own.
    pub(super) fn start(self: &Arc<Self>) -> io::Result<()> {
        let files = Arc::clone(self);
        let read = move || {
            // Also if it panics: none waits for ever then.
            let _told = Told(&files);
            files.clear_remains();
            if let Err(error) = files.reload() {
                tracing::error!(?error, "the hands could not be read");
            }
        };
        thread::Builder::new().name("hands".to_owned()).spawn(read).map(drop)
    }

    /// What a kill left of folders that were written or removed.
    fn clear_remains(&self) {
        let _changing = self.changing.lock();
        for path in disk::entries(&self.dir).unwrap_or_default() {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if (name.starts_with(STAGING) || name.starts_with(REMOVING))
                && let Err(error) = disk::remove_dir(&path)
            {
                tracing::warn!(folder = name, %error, "an incomplete hand could not be removed");
            }
        }
    }

    /// Asks what was read, once it was; after a while, what there is.
    pub(super) fn with_known<T>(&self, ask: impl FnOnce(&mut Known) -> T) -> T {
        let mut known = self.known.lock();
        if known.is_none() {
            self.read_once.wait_while_for(&mut known, |known| known.is_none(), READ_WAIT);
        }
        match known.as_mut() {
            Some(known) => ask(known),
            // Not kept: the thread still reads.
            None => ask(&mut Known::default()),
        }
    }

    /// Waits until all hands were read for the first time; for those who change files, before they hold others up.
    ///
    /// # Errors
    /// They are still being read.
    pub(super) fn wait_until_read(&self) -> Result<(), HandError> {
        self.with_known(|_| ());
        match self.known.lock().is_some() {
            true => Ok(()),
            false => Err(Refusal::full("the hands are being read; try again later", HANDS_FULL).into()),
        }
    }

    /// Reads a folder, and scans its files.
    pub(super) fn read_folder(&self, folder: &str) -> Result<Entry, String> {
        let dir = self.dir.join(folder);
        let stamp = stamp(&dir.join(HAND_FILE)).map_err(|error| error.to_string())?;
        let texts = Texts::read(&dir).map_err(|why| why.to_string())?;
        let definition = parse(&texts.toml).map_err(|refusal| refusal.message)?;
        let (settings, metrics, agents) =
            (definition.settings.len(), definition.dashboard.metrics.len(), definition.roles.len());
        let (origin, definition) = (texts.origin, short(definition));
        let summary = Arc::new(HandSummary { definition, settings, metrics, agents, origin });
        Ok(Entry { folder: folder.to_owned(), stamp, summary })
    }

    /// The names of folders that may be hands, sorted.
    fn folders(&self) -> io::Result<Vec<String>> {
        let paths = disk::entries(&self.dir)?;
        let names = paths.iter().filter_map(|path| path.file_name()?.to_str());
        Ok(names.filter(|name| !name.starts_with('.')).map(str::to_owned).collect())
    }

    /// What is on the disk now. Folders that did not change are taken from `before`.
    fn read_all(&self, before: &Known) -> io::Result<Known> {
        let kept: BTreeMap<&str, &Entry> = before.by_id.values().map(|entry| (&*entry.folder, entry)).collect();
        let mut known = Known::default();
        for folder in self.folders()? {
            let path = self.dir.join(&folder).join(HAND_FILE);
            // A file or a folder that is no hand.
            let Ok(now) = stamp(&path) else { continue };
            let unchanged = kept.get(&*folder).filter(|entry| entry.stamp == now).map(|entry| (*entry).clone());
            let read = unchanged.map_or_else(|| self.read_folder(&folder), Ok);
            match read {
                Ok(entry) if known.by_id.contains_key(&entry.summary.definition.id) => {
                    let why = format!("another folder has a hand with the id {:?}", entry.summary.definition.id);
                    known.failed.insert(folder, why);
                }
                Ok(_) if known.by_id.len() >= HANDS_MAX => {
                    known.failed.insert(folder, format!("the limit of {HANDS_MAX} hands is reached"));
                }
                Ok(entry) => drop(known.by_id.insert(entry.summary.definition.id.clone(), entry)),
                Err(why) => drop(known.failed.insert(folder, why)),
            }
        }
        Ok(known)
    }

    fn toolbox(&self) -> Option<Arc<dyn Toolbox>> {
        self.api.upgrade()?.services.get::<dyn Toolbox>()
    }
}

/// The part of a definition that lists show.
fn short(mut definition: HandDefinition) -> HandDefinition {
    for texts in definition.i18n.values_mut() {
        texts.agents.clear();
        texts.settings.clear();
    }
    definition.roles = Vec::new();
    definition.settings = Vec::new();
    definition.dashboard.metrics = Vec::new();
    definition
}

/// Logs what the disk said, which is not for clients.
pub(super) fn failed(error: io::Error) -> HandError {
    if error.kind() == ErrorKind::StorageFull {
        return FilesError::Full("the disk is full".to_owned()).into();
    }
    tracing::error!(%error, "the hands could not be read or written");
    FilesError::Failed.into()
}

impl Hands for HandFiles {
    fn list(&self) -> Vec<Arc<HandSummary>> {
        self.with_known(|known| known.by_id.values().map(|entry| Arc::clone(&entry.summary)).collect())
    }

    fn find(&self, id: &str) -> Result<Option<StoredHand>, HandError> {
        let Some(folder) = self.with_known(|known| known.by_id.get(id).map(|entry| entry.folder.clone())) else {
            return Ok(None);
        };
        let dir = self.dir.join(folder);
        if !dir.join(HAND_FILE).is_file() {
            return Ok(None);
        }
        let wrong = |why: String| HandError::from(FilesError::Damaged(format!("hand {id:?}: {why}")));
        let Texts { toml, skills, origin, .. } = Texts::read(&dir).map_err(|why| wrong(why.to_string()))?;
        let definition = parse(&toml).map_err(|refusal| wrong(refusal.message))?;
        if definition.id != id {
            return Err(wrong(format!("its id is {:?} now; reload the hands", definition.id)));
        }
        Ok(Some(StoredHand { definition, skills, origin }))
    }

    fn prepare(self: Arc<Self>, source: HandSource) -> BoxFuture<'static, Result<PreparedHand, HandError>> {
        Box::pin(self.prepare_source(source))
    }

    fn install(&self, hand: PreparedHand) -> Result<StoredHand, HandError> {
        self.put(hand)
    }

    fn registry(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<StoredHand>, HandError>> {
        Box::pin(self.of_registry())
    }

    fn remove(&self, id: &str) -> Result<bool, HandError> {
        self.wait_until_read()?;
        let _changing = self.changing.lock();
        let Some(entry) = self.with_known(|known| known.by_id.remove(id)) else { return Ok(false) };
        let gone = self.dir.join(format!("{REMOVING}{id}"));
        disk::remove_dir(&gone).map_err(failed)?;
        match fs::rename(self.dir.join(&entry.folder), &gone) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => {
                self.with_known(|known| known.by_id.insert(id.to_owned(), entry));
                return Err(failed(error));
            }
        }
        disk::sync_dir(&self.dir).map_err(failed)?;
        disk::remove_dir(&gone).map_err(failed)?;
        Ok(true)
    }

    fn reload(&self) -> Result<Reloaded, HandError> {
        let _changing = self.changing.lock();
        let began = Instant::now();
        // A copy, so that lists go on while folders are read.
        let before = self.known.lock().as_ref().map(|known| Known { by_id: known.by_id.clone(), ..Known::default() });
        let before = before.unwrap_or_default();
        let read = self.read_all(&before).map_err(failed);
        let (now, result) = match read {
            Ok(now) => (now, Ok(())),
            Err(error) => (Known { by_id: before.by_id.clone(), failed: BTreeMap::new() }, Err(error)),
        };
        let old = |id: &String| before.by_id.get(id);
        let changed = |entry: &Entry, id: &String| old(id).is_some_and(|old| old.stamp != entry.stamp);
        let reloaded = Reloaded {
            added: now.by_id.keys().filter(|id| old(id).is_none()).count(),
            updated: now.by_id.iter().filter(|(id, entry)| changed(entry, id)).count(),
            removed: before.by_id.keys().filter(|id| !now.by_id.contains_key(*id)).count(),
            total: now.by_id.len(),
            failed: now.failed.clone(),
        };
        for (folder, why) in &now.failed {
            tracing::warn!(folder, why, "a hand is left out");
        }
        *self.known.lock() = Some(now);
        self.read_once.notify_all();
        tracing::info!(hands = reloaded.total, took_ms = began.elapsed().as_millis() as u64, "the hands were read");
        result.map(|()| reloaded)
    }

    fn around(&self, hand: &StoredHand, settings: String) -> Result<Around, HandError> {
        let mut bases = BTreeMap::new();
        for base in hand.definition.roles.iter().filter_map(|role| role.base.as_deref()) {
            if manifest::validate_name(base).is_err() {
                continue;
            }
            if let Ok(text) = text_of(&self.agent_types.join(format!("{base}.toml")), MANIFEST_BYTES_MAX) {
                bases.insert(base.to_owned(), text);
            }
        }
        let needs = self.needs(&hand.definition.tools);
        Ok(Around { settings, skills: hand.skills.clone(), bases, needs })
    }

    fn met(&self, requirements: &[Requirement], servers: &[String]) -> Vec<bool> {
        requirements.iter().map(|requirement| self.programs.has(requirement, servers)).collect()
    }

    fn has_program(&self, name: &str) -> bool {
        name.is_empty() || self.programs.find(name).is_some()
    }

    fn install_command(&self, requirement: &Requirement) -> Option<String> {
        self.programs.install_command(requirement)
    }

    fn missing_tools(&self, tools: &[String]) -> Vec<String> {
        let Some(toolbox) = self.toolbox() else { return Vec::new() };
        let names = toolbox.names();
        let is_there = |tool: &&String| names.iter().any(|name| glob::matches(tool, name));
        tools.iter().filter(|tool| !is_there(tool)).cloned().collect()
    }

    fn seal(&self, secret: &str) -> Result<String, String> {
        self.vault.seal(SEALED_AS, secret.as_bytes()).map_err(|error| error.to_string())
    }

    fn installs(&self) -> bool {
        self.settings.get::<config::Hands>().install_deps
    }

    fn install_deps(self: Arc<Self>, wanted: Vec<Requirement>) -> BoxFuture<'static, Vec<DepResult>> {
        Box::pin(async move {
            let commands = wanted.into_iter().map(|it| (self.programs.install_command(&it), it)).collect();
            self.installer.install(commands, &self.programs).await
        })
    }
}

impl HandFiles {
    /// What these tools need: an agent that has them may use all of it, where it does not say otherwise.
    fn needs(&self, tools: &[String]) -> Capabilities {
        let Some(toolbox) = self.toolbox() else { return Capabilities::default() };
        let all = || vec![Box::from("*")];
        let mut needs = Capabilities::default();
        for tool in tools.iter().filter_map(|name| toolbox.tool(name)) {
            match tool.needs {
                Some("shell") => needs.shell = all(),
                Some("network") => needs.network = all(),
                Some("memory_read") => needs.memory_read = all(),
                Some("memory_write") => needs.memory_write = all(),
                Some("agent_spawn") => needs.agent_spawn = Some(true),
                _ => {}
            }
        }
        needs
    }
}
