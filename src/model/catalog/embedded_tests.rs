//! Checks of the data that this release was built with.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::kernel::host::host_of;
use crate::model::catalog::table::contradiction;

/// The keys that a model's row may have.
const KEYS: &[&str] = &[
    "id",
    "display_name",
    "tier",
    "context_window",
    "max_output_tokens",
    "input_cost_per_m",
    "output_cost_per_m",
    "cached_input_cost_per_m",
    "cache_write_cost_per_m",
    "supports_tools",
    "supports_vision",
    "supports_streaming",
    "supports_reasoning",
    "aliases",
    "also",
];

fn models() -> Vec<Arc<Model>> {
    let files = FILES.iter().map(|file| read_models(file).unwrap_or_else(|error| panic!("{error}")));
    files.flatten().map(Arc::new).collect()
}

#[test]
fn there_are_49_providers_with_models_and_no_file_is_left_out() {
    let providers = read_providers().unwrap();
    assert_eq!(providers.len(), 49);
    let names: Vec<&str> = providers.iter().map(|provider| &*provider.name).collect();
    let files: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, files, "one file for each provider, in the same order");
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 49);
    let models = models();
    assert!(models.len() >= 130, "{}", models.len());
    for name in names {
        assert!(models.iter().any(|model| *model.provider == *name), "{name} has no model");
    }
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/model/catalog/models");
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), FILES.len());
    assert_eq!(base().models.len(), models.len());
}

#[test]
fn every_provider_makes_sense() {
    for provider in &read_providers().unwrap() {
        let name = &provider.name;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(name.chars().all(plain) && !provider.display_name.is_empty(), "{name}");
        assert!(DriverKind::parse(&provider.driver).is_some(), "{name}: {}", provider.driver);
        let variables = provider.env_var.iter().chain(&provider.further_env_vars);
        let upper = |text: &str| text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        assert!(variables.clone().all(|variable| upper(variable) && !variable.is_empty()), "{name}");
        assert!(!provider.local || provider.env_var.is_none(), "{name}: a runtime of this machine needs no key");
        if !provider.base_url.is_empty() {
            let host = host_of(&provider.base_url);
            assert!(host.is_some() && !provider.base_url.ends_with('/'), "{name}: {}", provider.base_url);
            assert!(provider.local || provider.base_url.starts_with("https://"), "{name}");
        }
        assert!(provider.docs_url.as_deref().is_none_or(|url| url.starts_with("https://")), "{name}");
        assert!(provider.context_tokens.is_none_or(|tokens| (1_000..=20_000_000).contains(&tokens)), "{name}");
        if !provider.default_model.is_empty() {
            let models = base();
            let is_known = |model: &Arc<Model>| model.provider == *name && model.id == provider.default_model;
            assert!(models.models.iter().any(is_known), "{name}: its default model is not in the catalog");
        }
    }
}

#[test]
fn every_model_is_within_bounds_and_stands_there_once() {
    let models = models();
    assert_eq!(contradiction(&models), None);
    for model in &models {
        let name = format!("{} of {}", model.id, model.provider);
        assert!((1_000..=20_000_000).contains(&model.context_window), "{name}");
        assert!(model.tier.is_some(), "{name} has no tier");
        assert!(model.costs.input.is_some() == model.costs.output.is_some(), "{name}: half a price");
        let input = model.costs.input.unwrap_or_default();
        assert!(model.costs.cached_input.is_none_or(|cached| cached <= input), "{name}: the cache is dearer");
        assert!(model.costs.output.is_none_or(|output| output >= input), "{name}: answers are cheaper than prompts");
        assert!(model.costs.input.is_some() || model.costs.cached_input.is_none(), "{name}");
        let is_free = model.costs.price().is_some_and(|price| price.is_free());
        assert!(!is_free || *model.provider == *"builtin", "{name}: a budget would take calls of it for free");
    }
    let mut ids = BTreeSet::new();
    for (provider, id) in models.iter().flat_map(|model| model.ids().map(|id| (&model.provider, id))) {
        assert!(ids.insert((provider, id)), "{id} of {provider} stands there twice");
    }
    assert!(models.iter().any(|model| model.id.contains('/')), "ids may have slashes");
}

#[test]
fn no_row_has_a_key_that_nobody_reads() {
    for (provider, text) in FILES {
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(table.keys().collect::<Vec<_>>(), ["models"], "{provider}");
        for row in table["models"].as_array().unwrap() {
            for key in row.as_table().unwrap().keys() {
                assert!(KEYS.contains(&key.as_str()), "{provider}: {key}");
            }
        }
    }
}

#[test]
fn the_version_is_a_day() {
    assert!(chrono::NaiveDate::parse_from_str(VERSION, "%Y-%m-%d").is_ok());
}
