//! All models and aliases together, and how they are found.
//!
//! A model is known by its provider and its id: two providers may serve a model under one id. An id alone means the first in the
//! order of the catalog; `<provider>/<id>` means exactly one.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use agentsvc_systems::config::alias::{Aliases, ModelName};

use super::embedded;
use super::model::{Model, Origin};
use super::stored::StoredCatalog;

/// The models of a release or of a fetched catalog.
#[derive(Debug)]
pub(crate) struct Base {
    /// The day that they are of, as `YYYY-MM-DD`, with a number behind a dot where a day has several.
    pub(crate) version: Box<str>,
    /// In their order.
    pub(crate) models: Vec<Arc<Model>>,
}

/// The catalog at one moment.
#[derive(Debug)]
pub struct Table {
    version: Box<str>,
    origin: Origin,
    /// The catalog's, then those of clients.
    models: Vec<Arc<Model>>,
    /// Model and name of it (0 is its id, `n` is `also[n - 1]`), in the order of provider and name.
    names: Vec<(u16, u16)>,
    aliases: Arc<Aliases>,
}

impl Table {
    /// The embedded models, or those of a newer fetched catalog, with what clients added.
    pub(crate) fn of(kept: &StoredCatalog) -> Self {
        let embedded = embedded::base();
        let fetched = kept.fetched.as_ref().filter(|fetched| fetched.base.version > embedded.version);
        let (base, origin) = match fetched {
            Some(fetched) => (&fetched.base, Origin::Remote),
            None => (&embedded, Origin::BuiltIn),
        };
        // What a client added stands in the place of an entry that came later.
        let is_hidden =
            |model: &Model| kept.custom.iter().any(|own| own.id == model.id && own.provider == model.provider);
        let catalog = base.models.iter().filter(|model| !is_hidden(model));
        let models: Vec<Arc<Model>> = catalog.chain(&kept.custom).map(Arc::clone).collect();
        let names = sorted_names(&models);
        let mut table = Self { version: base.version.clone(), origin, models, names, aliases: Arc::default() };
        table.aliases = Arc::new(table.gather_aliases(kept));
        table
    }

    /// Those of the models that were not taken away, and over them those of clients whose model is there.
    fn gather_aliases(&self, kept: &StoredCatalog) -> Aliases {
        let mut aliases = Aliases::default();
        for model in &self.models {
            for alias in model.aliases.iter().filter(|alias| !kept.removed.contains(*alias)) {
                aliases.set(alias, ModelName { provider: model.provider.clone(), model: model.id.clone() });
            }
        }
        for (alias, name) in &kept.aliases {
            if self.find(&name.provider, &name.model).is_some() {
                aliases.set(alias, name.clone());
            }
        }
        aliases
    }

    /// Version: the date of the models.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Where its models come from, but for those of clients.
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// Every model, in the order of the catalog, those of clients last.
    pub fn models(&self) -> &[Arc<Model>] {
        &self.models
    }

    /// What the aliases stand for.
    pub const fn aliases(&self) -> &Arc<Aliases> {
        &self.aliases
    }

    /// The model that `provider` serves under `id`.
    pub fn find(&self, provider: &str, id: &str) -> Option<&Arc<Model>> {
        let found = self.names.binary_search_by(|name| {
            let (model, named) = self.named(*name);
            (&*model.provider, named).cmp(&(provider, id))
        });
        found.ok().map(|at| self.named(self.names[at]).0)
    }

    /// The model that `text` means: an id, or `<provider>/<id>`.
    pub fn lookup(&self, text: &str) -> Option<&Arc<Model>> {
        let by_id = self.models.iter().find(|model| *model.id == *text);
        let by_id = by_id.or_else(|| self.models.iter().find(|model| model.also.iter().any(|id| **id == *text)));
        by_id.or_else(|| text.split_once('/').and_then(|(provider, id)| self.find(provider, id)))
    }

    /// The shortest text that means `model`: its id, else `<provider>/<id>`.
    pub fn name_of(&self, name: &ModelName) -> String {
        match self.lookup(&name.model) {
            Some(found) if found.provider == name.provider => name.model.to_string(),
            _ => format!("{}/{}", name.provider, name.model),
        }
    }

    fn named(&self, (model, at): (u16, u16)) -> (&Arc<Model>, &str) {
        named(&self.models, (model, at))
    }
}

fn named(models: &[Arc<Model>], (model, at): (u16, u16)) -> (&Arc<Model>, &str) {
    let model = &models[usize::from(model)];
    let name = usize::from(at).checked_sub(1).and_then(|at| model.also.get(at)).unwrap_or(&model.id);
    (model, name)
}

/// The index of names. Of two models of one provider with the same name, the one whose id it is comes first and counts.
fn sorted_names(models: &[Arc<Model>]) -> Vec<(u16, u16)> {
    let mut names: Vec<(u16, u16)> = Vec::with_capacity(models.len());
    for (at, model) in models.iter().enumerate() {
        let count = u16::try_from(model.also.len()).unwrap_or(0);
        // More models than fit are not taken, see `CATALOG_MODELS_MAX`.
        names.extend(u16::try_from(at).into_iter().flat_map(|at| (0..=count).map(move |name| (at, name))));
    }
    let by_name = |a: &(u16, u16), b: &(u16, u16)| -> Ordering {
        let ((model_a, name_a), (model_b, name_b)) = (named(models, *a), named(models, *b));
        (&model_a.provider, name_a).cmp(&(&model_b.provider, name_b))
    };
    names.sort_by(|a, b| by_name(a, b).then(a.1.min(1).cmp(&b.1.min(1))));
    names.dedup_by(|later, first| by_name(later, first).is_eq());
    names
}

/// What stands in the way of using `models` as a catalog: two of one provider with the same id, an alias of two models or one
/// that is the id of a model.
pub(super) fn contradiction(models: &[Arc<Model>]) -> Option<String> {
    let mut ids = BTreeSet::new();
    let twice = models.iter().find(|model| !ids.insert((&model.provider, &model.id)));
    if let Some(model) = twice {
        return Some(format!("duplicate model {} of {}", model.id, model.provider));
    }
    let names: BTreeSet<&str> = models.iter().flat_map(|model| model.ids()).collect();
    let mut aliases = BTreeSet::new();
    for alias in models.iter().flat_map(|model| &model.aliases) {
        if !aliases.insert(&**alias) {
            return Some(format!("duplicate alias {alias}"));
        }
        if names.contains(&**alias) {
            return Some(format!("alias {alias} is the id of a model"));
        }
    }
    None
}
