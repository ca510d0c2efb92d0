//! The one who changes the catalog: on disk, in memory, in the world, in this order. One change at a time; a change goes on when
//! whoever asked for it is gone, so that disk and memory always say the same.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::http::blocking;
use agentsvc_api::http::bridge::Bridge;
use agentsvc_api::model::audit_kinds;
use agentsvc_api::model::catalog::{CatalogError, Changed, LastCheck, NewModel, UpdateReport};
use agentsvc_components::Actor;
use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::ModelChoice;
use agentsvc_systems::Settings;
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::config::Reconfigure;
use agentsvc_systems::config::alias::ModelName;
use arc_swap::ArcSwap;
use parking_lot::RwLock;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::config::Catalog as CatalogSettings;
use super::model::{Model, Origin};
use super::remote;
use super::row::{self, Row, Wrong};
use super::stored::{Fetched, Files, StoredCatalog};
use super::table::{Base, Table};
use super::{ModelCatalog, embedded};
use crate::kernel::world_loop::Clock;
use crate::model::provider::Providers;

/// How often the world is told again while it has no room for commands.
const TELL_TRIES: u32 = 100;
/// The pause between two tries.
const TELL_PAUSE: Duration = Duration::from_millis(50);

/// What the keeper needs from the rest of the daemon.
pub struct Parts {
    /// What everybody reads.
    pub catalog: Arc<ModelCatalog>,
    /// Who can be asked.
    pub providers: Arc<ArcSwap<Providers>>,
    /// Held while the world is given other settings, so that nobody gives it older ones.
    pub telling: Arc<tokio::sync::Mutex<()>>,
    /// Where changes are kept.
    pub files: Files,
    /// What the files held at start.
    pub kept: StoredCatalog,
    /// `[catalog]`.
    pub settings: CatalogSettings,
    /// The way to the world.
    pub bridge: Bridge,
    /// The settings of the world with the catalog as it is when this is called.
    pub world: Arc<dyn Fn() -> Settings + Send + Sync>,
    /// Hears which model is the default once the world has taken the settings.
    pub told: Arc<dyn Fn(&ModelChoice) + Send + Sync>,
    /// The time.
    pub clock: Clock,
}

/// Keeps the catalog.
#[derive(Clone)]
pub struct CatalogStore {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) parts: Parts,
    /// As on disk.
    pub(super) kept: ArcSwap<StoredCatalog>,
    /// The last look at the remote.
    pub(super) looked: RwLock<Option<LastCheck>>,
    changing: Mutex<()>,
    updating: Mutex<()>,
}

/// A file that a change writes.
#[derive(Clone, Copy, Debug)]
enum Write {
    Custom,
    Aliases,
    Fetched,
}

/// The files that a change writes, in this order.
type Writes = &'static [Write];
/// What goes on the audit trail.
type Entry = (AuditKind, Value);

impl CatalogStore {
    /// A keeper of what `parts` hold.
    pub fn new(parts: Parts) -> Self {
        let kept = ArcSwap::from_pointee(parts.kept.clone());
        let (looked, changing, updating) = (RwLock::default(), Mutex::default(), Mutex::default());
        Self { inner: Arc::new(Inner { parts, kept, looked, changing, updating }) }
    }

    /// Carries out a change whether or not somebody waits for it.
    pub(super) fn begin<T, F>(&self, change: impl FnOnce(Arc<Inner>) -> F) -> Changed<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, CatalogError>> + Send + 'static,
    {
        let task = blocking::spawn(change(Arc::clone(&self.inner)));
        Box::pin(async move {
            task.await.unwrap_or_else(|error| {
                tracing::error!(%error, "a change of the model catalog was interrupted");
                Err(CatalogError::Unstored)
            })
        })
    }
}

impl CatalogStore {
    /// Takes what is on the disk, where others than this keeper have put it: on the disk already, then in memory, then in
    /// the world.
    pub async fn reload(&self) {
        let inner = &self.inner;
        let _one_at_a_time = inner.changing.lock().await;
        let (files, providers) = (inner.parts.files.clone(), inner.parts.providers.load_full());
        let read = tokio::task::spawn_blocking(move || files.load(&|name| providers.get(name).is_some())).await;
        let Ok(kept) = read else { return tracing::error!("the stored models could not be reloaded") };
        inner.parts.catalog.set(Table::of(&kept));
        inner.kept.store(Arc::new(kept));
        inner.tell_world().await;
    }
}

impl Inner {
    /// Makes a change: `make` writes it into a copy, and says which files it touches and what goes on the audit trail before
    /// they are written. A change that then fails leaves an entry; one that is made never lacks it.
    async fn change<T: Send>(
        &self,
        make: impl FnOnce(&mut StoredCatalog, &Table) -> Result<(T, Writes, Entry), CatalogError> + Send,
    ) -> Result<T, CatalogError> {
        let _one_at_a_time = self.changing.lock().await;
        self.check_open()?;
        let mut next = StoredCatalog::clone(&self.kept.load());
        let (value, writes, (kind, details)) = make(&mut next, &self.parts.catalog.table())?;
        let entry = NoteAction { kind, agent: None, details };
        self.parts.bridge.ask(entry).await.map_err(CatalogError::World)?;
        let next = Arc::new(next);
        let (files, written) = (self.parts.files.clone(), Arc::clone(&next));
        let stored = tokio::task::spawn_blocking(move || {
            writes.iter().try_for_each(|write| match write {
                Write::Custom => files.write_custom(&written),
                Write::Aliases => files.write_aliases(&written),
                Write::Fetched => files.write_fetched(&written),
            })
        });
        let stored = stored.await.map_err(|error| error.to_string()).and_then(|done| done.map_err(|e| e.to_string()));
        stored.map_err(|error| {
            tracing::error!(error, "a change of the model catalog could not be stored");
            CatalogError::Unstored
        })?;
        self.parts.catalog.set(Table::of(&next));
        self.kept.store(next);
        self.tell_world().await;
        Ok(value)
    }

    /// A world that loads was given its settings before, and would not hear of a change.
    fn check_open(&self) -> Result<(), CatalogError> {
        let is_open = self.parts.bridge.is_open();
        if is_open { Ok(()) } else { Err(CatalogError::NotReady("the daemon is loading; try again in a moment")) }
    }

    async fn tell_world(&self) {
        let bridge = self.parts.bridge.acting_as(Actor::System);
        for _ in 0..TELL_TRIES {
            let told = {
                let _alone = self.parts.telling.lock().await;
                let settings = (self.parts.world)();
                let default_model = settings.default_model.clone();
                let told = bridge.ask(Reconfigure(Box::new(settings))).await;
                if told.is_ok() {
                    (self.parts.told)(&default_model);
                }
                told
            };
            let Err(refusal) = told else { return };
            if !bridge.is_open() {
                return;
            }
            tracing::debug!(%refusal, "the world's queue is full; it was not notified of the catalog");
            tokio::time::sleep(TELL_PAUSE).await;
        }
        tracing::error!(
            "the world was not notified of a change of the model catalog; the next change or start \
            notifies it"
        );
    }

    pub(super) async fn add_alias(self: Arc<Self>, alias: String, model: String) -> Result<Arc<Model>, CatalogError> {
        let alias = row::id("alias", &alias).map_err(of_row)?;
        row::id("model_id", &model).map_err(of_row)?;
        let make = |kept: &mut StoredCatalog, table: &Table| {
            let unknown = || CatalogError::Unknown(format!("the catalog has no model {:?}", model.trim()));
            let model = Arc::clone(table.lookup(model.trim()).ok_or_else(unknown)?);
            check_free(table, &alias)?;
            if kept.aliases.len() >= limit::MODEL_ALIASES_MAX {
                return Err(full("aliases", limit::MODEL_ALIASES_MAX));
            }
            let name = ModelName { provider: model.provider.clone(), model: model.id.clone() };
            let details = json!({ "alias": alias, "model": model.id, "provider": model.provider });
            kept.aliases.insert(alias, name);
            Ok((model, [Write::Aliases].as_slice(), (audit_kinds::MODEL_ALIAS_ADDED, details)))
        };
        self.change(make).await
    }

    pub(super) async fn remove_alias(self: Arc<Self>, alias: String) -> Result<(), CatalogError> {
        let make = |kept: &mut StoredCatalog, table: &Table| {
            let details = json!({ "alias": alias });
            if kept.aliases.remove(alias.as_str()).is_none() {
                if table.aliases().get(&alias).is_none() {
                    return Err(CatalogError::Unknown(format!("alias {alias:?} does not exist")));
                }
                if kept.removed.len() >= limit::MODEL_ALIASES_MAX {
                    return Err(full("removed aliases", limit::MODEL_ALIASES_MAX));
                }
                kept.removed.insert(alias.into());
            }
            Ok(((), [Write::Aliases].as_slice(), (audit_kinds::MODEL_ALIAS_REMOVED, details)))
        };
        self.change(make).await
    }

    pub(super) async fn add_model(self: Arc<Self>, model: NewModel) -> Result<Arc<Model>, CatalogError> {
        let is_provider = |name: &str| self.parts.providers.load().get(name).is_some();
        let model = row_of(model).into_model(Origin::Custom, is_provider).map_err(of_row)?;
        let make = |kept: &mut StoredCatalog, table: &Table| {
            let is_there = table.find(&model.provider, &model.id).is_some();
            if is_there || kept.custom.iter().any(|other| other.id == model.id) {
                return Err(CatalogError::Conflict(format!("model {:?} already exists in the catalog", model.id)));
            }
            if table.aliases().get(&model.id).is_some() {
                return Err(CatalogError::Conflict(format!("{:?} is an alias", model.id)));
            }
            if kept.custom.len() >= limit::CUSTOM_MODELS_MAX {
                return Err(full("models", limit::CUSTOM_MODELS_MAX));
            }
            let details = json!({ "model": model.id, "provider": model.provider });
            let model = Arc::new(model);
            kept.custom.push(Arc::clone(&model));
            Ok((model, [Write::Custom].as_slice(), (audit_kinds::MODEL_ADDED, details)))
        };
        self.change(make).await
    }

    pub(super) async fn remove_model(self: Arc<Self>, id: String) -> Result<Vec<String>, CatalogError> {
        let make = |kept: &mut StoredCatalog, table: &Table| {
            let is_meant = |model: &Model| {
                *model.id == *id || id.split_once('/').is_some_and(|(p, id)| *model.provider == *p && *model.id == *id)
            };
            let Some(at) = kept.custom.iter().position(|model| is_meant(model)) else {
                return Err(match table.lookup(&id) {
                    Some(_) => CatalogError::Conflict(format!("{id:?} is a built-in model and cannot be deleted")),
                    None => CatalogError::Unknown(format!("custom model {id:?} does not exist")),
                });
            };
            let gone = kept.custom.remove(at);
            let is_of_it = |name: &ModelName| name.provider == gone.provider && name.model == gone.id;
            let aliases = kept.aliases.iter().filter(|(_, name)| is_of_it(name));
            let aliases: Vec<String> = aliases.map(|(alias, _)| alias.to_string()).collect();
            kept.aliases.retain(|_, name| !is_of_it(name));
            // The aliases first: a crash in between leaves no alias without its model.
            let writes: Writes = if aliases.is_empty() { &[Write::Custom] } else { &[Write::Aliases, Write::Custom] };
            Ok((aliases, writes, (audit_kinds::MODEL_REMOVED, json!({ "model": id }))))
        };
        self.change(make).await
    }

    pub(super) async fn update(self: Arc<Self>, only_look: bool) -> Result<UpdateReport, CatalogError> {
        let Ok(_one_at_a_time) = self.updating.try_lock() else {
            return Err(CatalogError::Conflict("a catalog update is already running".to_owned()));
        };
        if self.parts.settings.url.is_none() {
            let text = "no remote catalog is configured; set `[catalog] url`";
            return Err(CatalogError::Conflict(text.to_owned()));
        }
        self.check_open()?;
        let at = (self.parts.clock.wall)().to_string();
        let fetched = self.fetch(at.clone()).await;
        let (version, error) = match &fetched {
            Ok(fetched) => (Some(fetched.base.version.to_string()), None),
            Err(error) => (None, Some(error.clone())),
        };
        *self.looked.write() = Some(LastCheck { at, version, error });
        let fetched = fetched.map_err(|error| {
            tracing::warn!(error, "the model catalog could not be updated; the current catalog is unchanged");
            CatalogError::Remote(error)
        })?;
        let previous = self.parts.catalog.table().version().to_owned();
        let is_newer = *fetched.base.version > *previous;
        let report = UpdateReport {
            status: if !is_newer {
                "up_to_date"
            } else if only_look {
                "available"
            } else {
                "updated"
            },
            version: if is_newer && !only_look { fetched.base.version.to_string() } else { previous.clone() },
            previous_version: previous,
            remote_version: fetched.base.version.to_string(),
            models: fetched.base.models.len(),
            skipped: fetched.skipped,
            sha256: fetched.sha256.clone(),
        };
        if report.status == "updated" {
            let UpdateReport { version, previous_version, models, sha256, .. } = &report;
            let details = json!({
                "version": version,
                "previous_version": previous_version,
                "models": models,
                "sha256": sha256,
            });
            let make = |kept: &mut StoredCatalog, _: &Table| {
                kept.fetched = Some(Arc::new(fetched));
                Ok(((), [Write::Fetched].as_slice(), (audit_kinds::CATALOG_UPDATED, details)))
            };
            self.change(make).await?;
            tracing::info!(version = report.version, models = report.models, "the model catalog was updated");
        }
        Ok(report)
    }

    async fn fetch(self: &Arc<Self>, at: String) -> Result<Fetched, String> {
        let document = remote::fetch(&self.parts.settings).await?;
        let (keeper, text) = (Arc::clone(self), Arc::<str>::from(document.text));
        let parsed = tokio::task::spawn_blocking({
            let text = Arc::clone(&text);
            move || remote::parse(&text, &|name| keeper.parts.providers.load().get(name).is_some())
        });
        let (base, skipped): (Base, usize) = parsed.await.map_err(|error| error.to_string())??;
        let url = self.parts.settings.url.as_deref().unwrap_or_default().to_owned();
        Ok(Fetched { at, url, sha256: document.sha256, document: text, base: Arc::new(base), skipped })
    }
}

/// An alias is free when neither a model nor another alias has its name.
fn check_free(table: &Table, alias: &str) -> Result<(), CatalogError> {
    if table.aliases().get(alias).is_some() {
        return Err(CatalogError::Conflict(format!("alias {alias:?} already exists; delete it first")));
    }
    match table.lookup(alias) {
        Some(_) => Err(CatalogError::Conflict(format!("{alias:?} is the id of a model"))),
        None => Ok(()),
    }
}

fn full(what: &str, most: usize) -> CatalogError {
    CatalogError::Full(format!("the limit of {most} {what} is reached; delete one first"))
}

fn of_row(wrong: Wrong) -> CatalogError {
    CatalogError::Wrong { field: wrong.field, message: wrong.message }
}

fn row_of(model: NewModel) -> Row {
    Row {
        id: model.id,
        provider: Some(model.provider),
        display_name: model.display_name.unwrap_or_default(),
        tier: model.tier,
        context_window: model.context_window,
        max_output_tokens: model.max_output_tokens,
        input_cost_per_m: model.input_cost_per_m,
        output_cost_per_m: model.output_cost_per_m,
        cached_input_cost_per_m: model.cached_input_cost_per_m,
        cache_write_cost_per_m: model.cache_write_cost_per_m,
        supports_tools: model.supports_tools,
        supports_vision: model.supports_vision,
        supports_streaming: model.supports_streaming,
        supports_reasoning: model.supports_reasoning,
        ..Row::default()
    }
}

/// Is `name` a provider of this release or of `configured`?
pub fn is_provider<'a>(configured: impl Fn(&str) -> bool + 'a) -> impl Fn(&str) -> bool + 'a {
    move |name| embedded::provider(name).is_some() || configured(name)
}
