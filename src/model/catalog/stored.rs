//! What is kept on disk beside the world: models and aliases of clients, and a fetched catalog.
//!
//! | file under `data/` | holds |
//! |---|---|
//! | `custom_models.json` | `models`: rows with the keys of `POST /api/models/custom` |
//! | `model_aliases.json` | `aliases`: alias to `provider` and `model`; `removed`: aliases of the catalog that were taken away |
//! | `model_catalog.json` | a fetched catalog: `fetched_at`, `url`, `sha256`, and its text in `document` |
//!
//! A file is replaced as a whole and made durable before a change is answered. One that cannot be read is put aside under
//! `.damaged`, with an error in the log: the daemon starts without it, and nothing writes over it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentsvc_components::kernel::limit;
use agentsvc_systems::config::alias::ModelName;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::model::{Model, Origin};
use super::remote;
use super::row::{self, Row};
use super::table::Base;
use crate::kernel::disk;
use crate::kernel::home::create_private_dir;

const CUSTOM_MODELS: &str = "custom_models.json";
const ALIASES: &str = "model_aliases.json";
const FETCHED: &str = "model_catalog.json";

/// Bytes of one of the files. More is not one of ours. JSON escapes make a fetched text longer.
const FILE_BYTES_MAX: u64 = 4 * limit::CATALOG_BYTES_MAX as u64;

/// What is kept. A change is made on a copy, which takes the place of this one when it is on disk.
#[derive(Clone, Debug, Default)]
pub struct StoredCatalog {
    /// Models that clients added.
    pub(super) custom: Vec<Arc<Model>>,
    /// Aliases that clients made.
    pub(super) aliases: BTreeMap<Box<str>, ModelName>,
    /// Aliases of the catalog that clients took away.
    pub(super) removed: BTreeSet<Box<str>>,
    /// The newest catalog that was fetched.
    pub(super) fetched: Option<Arc<Fetched>>,
}

/// A catalog that was fetched.
#[derive(Debug)]
pub(super) struct Fetched {
    /// When, RFC 3339.
    pub(super) at: String,
    /// From where.
    pub(super) url: String,
    /// SHA-256 of its text, in hex.
    pub(super) sha256: String,
    /// Its text, as it came.
    pub(super) document: Arc<str>,
    /// Its models.
    pub(super) base: Arc<Base>,
    /// Number of models skipped because their provider is unknown.
    pub(super) skipped: usize,
}

impl StoredCatalog {
    /// Is there nothing?
    pub(super) fn is_empty(&self) -> bool {
        self.custom.is_empty() && self.aliases.is_empty() && self.removed.is_empty() && self.fetched.is_none()
    }
}

#[derive(Default, Serialize, Deserialize)]
struct CustomFile {
    models: Vec<Row>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct AliasFile {
    aliases: BTreeMap<Box<str>, Target>,
    removed: BTreeSet<Box<str>>,
}

#[derive(Serialize, Deserialize)]
struct Target {
    provider: Box<str>,
    model: Box<str>,
}

#[derive(Serialize, Deserialize)]
struct FetchedFile {
    fetched_at: String,
    url: String,
    sha256: String,
    document: Arc<str>,
}

/// Where the files are.
#[derive(Clone, Debug)]
pub struct Files {
    dir: PathBuf,
}

impl Files {
    /// The files in `dir`, the daemon's `data_dir`; it need not exist.
    pub const fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// What they hold. Blocks.
    pub fn load(&self, is_provider: &dyn Fn(&str) -> bool) -> StoredCatalog {
        let custom = self.read(CUSTOM_MODELS, |file: CustomFile| custom_models(file, is_provider)).unwrap_or_default();
        let (aliases, removed) = self.read(ALIASES, aliases).unwrap_or_default();
        let fetched = self.read(FETCHED, |file| fetched(file, is_provider));
        StoredCatalog { custom, aliases, removed, fetched: fetched.map(Arc::new) }
    }

    /// Makes the models of clients durable. Blocks.
    pub(super) fn write_custom(&self, kept: &StoredCatalog) -> std::io::Result<()> {
        self.write(CUSTOM_MODELS, &CustomFile { models: kept.custom.iter().map(|model| Row::of(model)).collect() })
    }

    /// Makes the aliases of clients durable. Blocks.
    pub(super) fn write_aliases(&self, kept: &StoredCatalog) -> std::io::Result<()> {
        let target = |name: &ModelName| Target { provider: name.provider.clone(), model: name.model.clone() };
        let aliases = kept.aliases.iter().map(|(alias, name)| (alias.clone(), target(name))).collect();
        self.write(ALIASES, &AliasFile { aliases, removed: kept.removed.clone() })
    }

    /// Makes the fetched catalog durable. Blocks.
    pub(super) fn write_fetched(&self, kept: &StoredCatalog) -> std::io::Result<()> {
        let Some(fetched) = &kept.fetched else { return Ok(()) };
        let Fetched { at, url, sha256, document, .. } = &**fetched;
        let document = Arc::clone(document);
        let file = FetchedFile { fetched_at: at.clone(), url: url.clone(), sha256: sha256.clone(), document };
        self.write(FETCHED, &file)
    }

    fn read<F: DeserializeOwned, T>(&self, name: &str, take: impl FnOnce(F) -> Result<T, String>) -> Option<T> {
        let path = self.dir.join(name);
        let text = match read(&path) {
            Ok(text) => text?,
            Err(error) => {
                self.put_aside(&path, &error);
                return None;
            }
        };
        let taken = serde_json::from_str(&text).map_err(|error| error.to_string()).and_then(take);
        taken.map_err(|error| self.put_aside(&path, &error)).ok()
    }

    fn put_aside(&self, path: &Path, error: &str) {
        let mut aside = path.as_os_str().to_owned();
        aside.push(".damaged");
        let moved = fs::rename(path, &aside);
        let (path, aside) = (path.display(), Path::new(&aside).display());
        tracing::error!(%path, %aside, error, moved = moved.is_ok(), "a file of the model catalog is not valid; it \
            was renamed to *.damaged");
    }

    fn write(&self, name: &str, content: &impl Serialize) -> std::io::Result<()> {
        create_private_dir(&self.dir).map_err(std::io::Error::other)?;
        let mut bytes = serde_json::to_vec_pretty(content)?;
        bytes.push(b'\n');
        disk::replace(&self.dir.join(name), &bytes)
    }
}

/// The text of a file; `None` when it is not there.
fn read(path: &Path) -> Result<Option<String>, String> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Ok(metadata) if metadata.len() > FILE_BYTES_MAX => return Err("it is too long".to_owned()),
        _ => {}
    }
    disk::read_text(path).map(Some).map_err(|error| error.to_string())
}

/// A model whose provider is not there any more stays in the file and is not shown.
fn custom_models(file: CustomFile, is_provider: &dyn Fn(&str) -> bool) -> Result<Vec<Arc<Model>>, String> {
    let mut models = Vec::with_capacity(file.models.len());
    for row in file.models {
        let id = row.id.clone();
        if row.provider.as_deref().is_none_or(|provider| !is_provider(provider)) {
            tracing::warn!(model = %id, provider = row.provider, "the provider of a custom model no longer exists");
        }
        // It is kept all the same: the next write must not lose it.
        let model = row.into_model(Origin::Custom, |provider| !provider.is_empty());
        models.push(Arc::new(model.map_err(|wrong| format!("{id}: {wrong}"))?));
    }
    Ok(models)
}

type Named = (BTreeMap<Box<str>, ModelName>, BTreeSet<Box<str>>);

fn aliases(file: AliasFile) -> Result<Named, String> {
    for alias in file.aliases.keys().chain(&file.removed) {
        row::id("alias", alias).map_err(|wrong| wrong.to_string())?;
    }
    let name = |target: Target| ModelName { provider: target.provider, model: target.model };
    let aliases = file.aliases.into_iter().map(|(alias, target)| (alias, name(target))).collect();
    Ok((aliases, file.removed))
}

fn fetched(file: FetchedFile, is_provider: &dyn Fn(&str) -> bool) -> Result<Fetched, String> {
    let FetchedFile { fetched_at: at, url, sha256, document } = file;
    if remote::sha256(document.as_bytes()) != sha256 {
        return Err("its text was changed".to_owned());
    }
    let (base, skipped) = remote::parse(&document, is_provider)?;
    Ok(Fetched { at, url, sha256, document, base: Arc::new(base), skipped })
}
