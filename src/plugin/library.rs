//! The plugins of a home, read once and again when one of them changes.
//!
//! ```text
//! {home}/plugins/<name>/plugin.toml, hooks/...   a plugin, as it was installed; hooks never change it
//! {data}/plugins/<name>/state.json               whether it is enabled, where it came from, the sums of its files
//! {data}/plugins/<name>/home/                    its private home, which its hooks may change
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::config::ContextEngine;
use super::manifest::{self, FILE_BYTES_MAX, parse};
use super::plugin::{Around, Kind, Plugin};
use super::signature::{self, Signer};
use crate::kernel::disk;
use crate::kernel::home::create_private_dir;
use crate::kernel::settings::Settings;
use crate::kernel::vault::Vault;
use crate::skill_source::folders::{Folders, check_name};
use crate::skill_source::staging::files;

/// Plugins of a home; those that come later in the alphabet are left out.
pub(crate) const PLUGINS_MAX: usize = 256;
/// How long a turn after a start waits until they are read.
const READ_WAIT: Duration = Duration::from_secs(5);
/// Bytes of the file of a state.
const STATE_BYTES_MAX: u64 = 4 << 20;

/// What is kept of a plugin beside its folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    /// Its hooks do not run.
    pub(super) is_disabled: bool,
    /// Where it came from.
    pub(super) source: String,
    pub(super) installed_at: String,
    /// May its hooks use the network, if its manifest asks for that? Whoever installs it says so. `None`: as its manifest says, for it
    /// was put there by hand, or installed before this was asked.
    pub(super) network: Option<bool>,
    /// SHA-256 in hex of each of its files as they were installed.
    pub(super) sums: BTreeMap<String, String>,
}

/// What was read.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) plugins: BTreeMap<String, Arc<Plugin>>,
    /// Folders that are no plugins that can be used, and why.
    pub(crate) failed: BTreeMap<String, String>,
}

/// The plugins of a home.
pub(crate) struct Library {
    pub(super) folders: Folders,
    data: PathBuf,
    settings: Settings,
    vault: Vault,
    catalog: ArcSwap<Catalog>,
    /// Held while they are read, and while what is kept of them changes.
    pub(super) changing: Mutex<()>,
    is_read: watch::Sender<bool>,
}

impl Library {
    pub(super) fn new(root: &Path, data_dir: &Path, settings: Settings, vault: Vault) -> Arc<Self> {
        Arc::new(Self {
            folders: Folders::of_plugins(root.join("plugins")),
            data: data_dir.join("plugins"),
            settings,
            vault,
            catalog: ArcSwap::default(),
            changing: Mutex::new(()),
            is_read: watch::Sender::new(false),
        })
    }

    /// What was read, after a start once that is done.
    pub(crate) async fn catalog(&self) -> Arc<Catalog> {
        let mut is_read = self.is_read.subscribe();
        if tokio::time::timeout(READ_WAIT, is_read.wait_for(|is_read| *is_read)).await.is_err() {
            tracing::warn!("the plugins are not read yet; a turn goes on without them");
        }
        self.present()
    }

    /// What was read so far.
    pub(crate) fn present(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Were they read?
    pub(crate) fn is_read(&self) -> bool {
        *self.is_read.borrow()
    }

    /// Its private home.
    pub(crate) fn home_of(&self, name: &str) -> PathBuf {
        self.data.join(name).join("home")
    }

    /// Reads all. Blocks on the disk.
    pub(super) fn read_all(&self) {
        let _changing = self.changing.lock();
        let mut names: Vec<String> = Vec::new();
        match disk::there(disk::entries(self.folders.root())) {
            Ok(found) => {
                names.extend(found.unwrap_or_default().iter().filter(|path| path.is_dir()).filter_map(|path| {
                    path.file_name()?.to_str().filter(|name| check_name(name).is_ok()).map(str::to_owned)
                }))
            }
            Err(error) => tracing::error!(%error, "the plugins cannot be listed"),
        }
        names.sort_unstable();
        if names.len() > PLUGINS_MAX {
            tracing::warn!("only the first {PLUGINS_MAX} plugins are used; there are {}", names.len());
            names.truncate(PLUGINS_MAX);
        }
        let mut catalog = Catalog::default();
        for name in names {
            self.read_into(&mut catalog, &name);
        }
        self.replace(catalog);
        self.is_read.send_replace(true);
    }

    /// Reads one again. Blocks on the disk; [`changing`](Self::changing) must be held.
    pub(super) fn read_again(&self, name: &str) {
        let present = self.present();
        let mut catalog = Catalog { plugins: present.plugins.clone(), failed: present.failed.clone() };
        catalog.plugins.remove(name);
        catalog.failed.remove(name);
        if self.folders.path(name).is_dir() {
            self.read_into(&mut catalog, name);
        }
        self.replace(catalog);
    }

    fn replace(&self, catalog: Catalog) {
        let former = self.catalog.swap(Arc::new(catalog));
        let present = self.present();
        for (name, plugin) in &former.plugins {
            if present.plugins.get(name).is_none_or(|now| !Arc::ptr_eq(now, plugin)) {
                plugin.stop();
            }
        }
    }

    fn read_into(&self, catalog: &mut Catalog, name: &str) {
        match self.read(name) {
            Ok(plugin) => {
                catalog.plugins.insert(name.to_owned(), Arc::new(plugin));
            }
            Err(why) => {
                tracing::warn!(plugin = name, why, "a plugin cannot be used");
                catalog.failed.insert(name.to_owned(), why);
            }
        }
    }

    /// Reads a plugin.
    fn read(&self, name: &str) -> Result<Plugin, String> {
        let folder = self.folders.path(name);
        let text = text_of(&folder)?;
        let mut manifest = parse(&text)?;
        if manifest.name != name {
            return Err(format!("name: {:?} is not the name of the folder, {name:?}", manifest.name));
        }
        let state = self.state(name).map_err(|error| format!("its state cannot be read: {error}"))?;
        if !state.sums.is_empty() || !manifest.integrity.is_empty() {
            let found = files(&folder).map_err(|error| error.to_string())?;
            signature::compare(&found, &manifest.integrity, false)?;
            if !state.sums.is_empty() {
                signature::compare(&found, &state.sums, true)?;
            }
        }
        let is_signed = self.check_signature(&folder, text.as_bytes())?;
        self.check_required(is_signed)?;
        if is_signed {
            signature::covers(&files(&folder).map_err(|error| error.to_string())?, &manifest.integrity)?;
        }
        for depends in &manifest.depends {
            if !self.folders.path(depends).join(manifest::FILE).is_file() {
                manifest.warnings.push(format!("plugin_depends: {depends:?} is not installed"));
            }
        }
        let folder = folder.canonicalize().map_err(|error| format!("its folder cannot be found: {error}"))?;
        let around = Around {
            kind: Kind::Files,
            folder,
            home: self.home_of(name),
            is_enabled: !state.is_disabled,
            network: manifest.rules.allow_network && state.network.unwrap_or(true),
            source: state.source,
            installed_at: state.installed_at,
            is_signed,
        };
        Plugin::new(manifest, around)
    }

    /// Checks the signature, if there is one.
    pub(super) fn check_signature(&self, folder: &Path, manifest: &[u8]) -> Result<bool, String> {
        let found = disk::there(disk::read_small_text(&folder.join(signature::FILE)));
        let Some(text) = found.map_err(|error| format!("{}: {error}", signature::FILE))? else { return Ok(false) };
        let mut keys: Vec<Vec<u8>> =
            self.settings.get::<ContextEngine>().signing_keys.iter().map(|key| key.0.clone()).collect();
        keys.extend(Signer::of(&self.vault, false)?.map(|signer| signer.key()));
        signature::check(manifest, &text, &keys).map(|()| true)
    }

    /// Refuses a plugin without a signature where the configuration wants one.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn check_required(&self, is_signed: bool) -> Result<(), String> {
        if is_signed || !self.settings.get::<ContextEngine>().require_signature {
            return Ok(());
        }
        Err("it is not signed, and `require_signature` of [context_engine] is true".to_owned())
    }

    /// The key of the daemon that signs plugins.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn signer(&self) -> Result<Signer, String> {
        Signer::of(&self.vault, true)?.ok_or_else(|| "there is no key".to_owned())
    }

    /// What is kept of a plugin; the default where nothing is.
    pub(super) fn state(&self, name: &str) -> io::Result<State> {
        let path = self.data.join(name).join("state.json");
        match disk::there(disk::read_small(&path, STATE_BYTES_MAX))? {
            None => Ok(State::default()),
            Some(bytes) => Ok(serde_json::from_slice(&bytes)?),
        }
    }

    pub(super) fn keep_state(&self, name: &str, state: &State) -> io::Result<()> {
        let directory = self.data.join(name);
        create_private_dir(&directory).map_err(io::Error::other)?;
        disk::replace(&directory.join("state.json"), &serde_json::to_vec_pretty(state)?)
    }

    /// Removes what is kept of a plugin, with its private home.
    pub(super) fn forget(&self, name: &str) -> io::Result<()> {
        disk::remove_dir(&self.data.join(name))
    }
}

/// The text of a manifest.
pub(super) fn text_of(folder: &Path) -> Result<String, String> {
    let bytes = disk::read_small(&folder.join(manifest::FILE), FILE_BYTES_MAX);
    let bytes = bytes.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("{}: missing", manifest::FILE),
        _ => format!("{}: {error}", manifest::FILE),
    })?;
    String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8", manifest::FILE))
}

/// Bytes of the files of a folder.
pub(super) fn size_of(folder: &Path) -> u64 {
    let (mut open, mut bytes) = (vec![folder.to_owned()], 0);
    while let Some(path) = open.pop() {
        for path in disk::entries(&path).unwrap_or_default() {
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => open.push(path),
                Ok(found) => bytes += found.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}
