//! What the API sees of the catalog.

use std::collections::BTreeMap;

use agentsvc_api::model::catalog::{CatalogStatus, Changed, ModelEntry, Models, NewModel, UpdateReport};
use agentsvc_components::Micros;

use super::catalog_store::CatalogStore;
use super::model::{Model, Tier};
use super::table::Table;

/// Aliases by provider and id.
type AliasesOf<'a> = BTreeMap<(&'a str, &'a str), Vec<String>>;

impl Models for CatalogStore {
    fn models(&self) -> Vec<ModelEntry> {
        let table = self.inner.parts.catalog.table();
        let aliases = aliases_of(&table);
        table.models().iter().map(|model| entry(model, &aliases)).collect()
    }

    fn model(&self, text: &str) -> Option<ModelEntry> {
        let table = self.inner.parts.catalog.table();
        table.lookup(text).map(|model| entry(model, &aliases_of(&table)))
    }

    fn aliases(&self) -> BTreeMap<String, String> {
        let table = self.inner.parts.catalog.table();
        table.aliases().iter().map(|(alias, name)| (alias.to_owned(), table.name_of(name))).collect()
    }

    fn alias(&self, alias: &str) -> Option<(String, String)> {
        let table = self.inner.parts.catalog.table();
        table.aliases().get(alias).map(|name| (name.provider.to_string(), name.model.to_string()))
    }

    fn status(&self) -> CatalogStatus {
        let parts = &self.inner.parts;
        let (table, kept) = (parts.catalog.table(), self.inner.kept.load_full());
        let looked = self.inner.looked.read().clone();
        let settings = &parts.settings;
        let proof = match (&settings.public_key, &settings.sha256) {
            (Some(_), _) => "public_key",
            (None, Some(_)) => "sha256",
            (None, None) => "checksum_file",
        };
        let found = looked.as_ref().and_then(|look| look.version.clone());
        CatalogStatus {
            version: table.version().to_owned(),
            source: table.origin().as_str(),
            last_updated: kept.fetched.as_ref().map(|fetched| fetched.at.clone()),
            models: table.models().len(),
            custom_models: kept.custom.len(),
            aliases: table.aliases().len(),
            providers: parts.providers.load().iter().count(),
            url: settings.url.as_deref().map(str::to_owned),
            proof: settings.url.as_ref().map(|_| proof),
            last_check: looked,
            available_version: found.filter(|found| **found > *table.version()),
        }
    }

    fn add_alias(&self, alias: String, model: String) -> Changed<ModelEntry> {
        self.begin(|inner| async move {
            let model = inner.clone().add_alias(alias, model).await?;
            Ok(entry(&model, &aliases_of(&inner.parts.catalog.table())))
        })
    }

    fn remove_alias(&self, alias: String) -> Changed<()> {
        self.begin(|inner| inner.remove_alias(alias))
    }

    fn add_model(&self, model: NewModel) -> Changed<ModelEntry> {
        self.begin(|inner| async move { Ok(entry(&*inner.add_model(model).await?, &AliasesOf::new())) })
    }

    fn remove_model(&self, id: String) -> Changed<Vec<String>> {
        self.begin(|inner| inner.remove_model(id))
    }

    fn update(&self, only_look: bool) -> Changed<UpdateReport> {
        self.begin(move |inner| inner.update(only_look))
    }
}

fn aliases_of(table: &Table) -> AliasesOf<'_> {
    let mut aliases = AliasesOf::new();
    for (alias, name) in table.aliases().iter() {
        aliases.entry((&*name.provider, &*name.model)).or_default().push(alias.to_owned());
    }
    aliases
}

fn entry(model: &Model, aliases: &AliasesOf<'_>) -> ModelEntry {
    let costs = &model.costs;
    ModelEntry {
        id: model.id.to_string(),
        provider: model.provider.to_string(),
        display_name: model.display_name.to_string(),
        tier: model.tier.map(Tier::as_str),
        context_window: model.context_window,
        max_output_tokens: model.max_output_tokens,
        input_cost_per_m: costs.input.map_or(0.0, Micros::usd),
        output_cost_per_m: costs.output.map_or(0.0, Micros::usd),
        price_known: costs.price().is_some(),
        cached_input_cost_per_m: costs.cached_input.map(Micros::usd),
        cache_write_cost_per_m: costs.cache_write.map(Micros::usd),
        supports_tools: model.tools,
        supports_vision: model.vision.is_likely(),
        vision_support: model.vision.as_str(),
        supports_streaming: model.streaming,
        supports_reasoning: model.reasoning,
        aliases: aliases.get(&(&*model.provider, &*model.id)).cloned().unwrap_or_default(),
        source: model.origin.as_str(),
    }
}
