//! Tests of the catalog as a whole: how models are found, what the world is told, what is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use agentsvc_components::Micros;
use agentsvc_components::manifest::ModelChoice;
use agentsvc_systems::config::alias::ModelName;

use super::row::Row;
use super::*;
use crate::model::provider::{ProviderSettings, Providers};
use agentsvc_components::usage::price::Price;

fn custom(provider: &str, id: &str, more: Row) -> Arc<Model> {
    let row = Row { id: id.to_owned(), provider: Some(provider.to_owned()), context_window: 4_000, ..more };
    Arc::new(row.into_model(Origin::Custom, |_| true).unwrap())
}

fn priced(usd: f64) -> Row {
    Row { input_cost_per_m: Some(usd), output_cost_per_m: Some(usd), ..Row::default() }
}

fn choice(provider: &str, model: &str) -> ModelChoice {
    ModelChoice { provider: provider.into(), model: model.into(), ..ModelChoice::default() }
}

#[test]
fn a_model_is_found_by_its_id_by_another_id_and_with_its_provider() {
    let table = ModelCatalog::embedded().table();
    let found = |text: &str| table.lookup(text).map(|model| format!("{} {}", model.provider, model.id));
    assert_eq!(found("gpt-4o").as_deref(), Some("openai gpt-4o"), "the first in the order of the catalog");
    assert_eq!(found("azure/gpt-4o").as_deref(), Some("azure gpt-4o"));
    assert_eq!(found("claude-sonnet-4-5").as_deref(), Some("anthropic claude-sonnet-4-5-20250929"));
    assert_eq!(found("openrouter/openai/gpt-4o-mini").as_deref(), Some("openrouter openai/gpt-4o-mini"));
    assert_eq!(found("nothing"), None);
    for model in table.models() {
        for id in model.ids() {
            assert!(Arc::ptr_eq(table.find(&model.provider, id).unwrap(), model), "{id} of {}", model.provider);
        }
    }
    let sonnet = table.aliases().of(&choice("", "sonnet")).unwrap();
    assert_eq!((&*sonnet.provider, &*table.name_of(sonnet)), ("anthropic", "claude-sonnet-4-6"));
    for (alias, name) in table.aliases().iter() {
        assert!(table.find(&name.provider, &name.model).is_some(), "{alias} stands for nothing");
    }
}

#[test]
fn what_clients_added_lies_over_the_catalog() {
    let mut kept =
        StoredCatalog { custom: vec![custom("openai", "gpt-4o", Row::default())], ..StoredCatalog::default() };
    kept.removed.insert("sonnet".into());
    let name = |model: &str| ModelName { provider: "openai".into(), model: model.into() };
    kept.aliases.insert("mine".into(), name("gpt-4o"));
    kept.aliases.insert("gone".into(), name("no-such-model"));
    let table = ModelCatalog::with(&kept).table();
    assert_eq!(table.find("openai", "gpt-4o").unwrap().origin, Origin::Custom);
    assert_eq!(table.models().iter().filter(|m| *m.id == *"gpt-4o" && *m.provider == *"openai").count(), 1);
    let aliases = table.aliases();
    assert!(aliases.get("mine").is_some() && aliases.get("gone").is_none() && aliases.get("sonnet").is_none());
    assert!(aliases.get("opus").is_some());
}

#[test]
fn prices_and_contexts_of_the_operator_come_first() {
    let kept = StoredCatalog {
        custom: vec![custom("openai", "own", priced(7.0)), custom("ollama", "big", Row::default())],
        ..StoredCatalog::default()
    };
    let set = ProviderSettings { name: "groq".to_owned(), context_tokens: Some(999), ..ProviderSettings::default() };
    let providers = Providers::new(vec![set]).unwrap().with_catalog(Arc::new(ModelCatalog::with(&kept)));
    let price = |usd: u64| Price {
        input_per_m: Micros(usd * 1_000_000),
        output_per_m: Micros(usd * 1_000_000),
        ..Price::default()
    };
    let written: BTreeMap<Box<str>, Price> =
        [("openai/*".into(), price(1)), ("openai/gpt-4o".into(), price(2)), ("xai/grok-4".into(), price(3))].into();
    let table = providers.catalog().table();
    let known = facts(&table, &providers, &written);
    let usd = |provider: &str, model: &str| known.prices.of(provider, model).map(|price| price.input_per_m.usd());
    assert_eq!(usd("openai", "gpt-4o"), Some(2.0));
    assert_eq!(usd("openai", "gpt-4o-mini"), Some(1.0), "`*` of the configuration comes before the catalog");
    assert_eq!(usd("openai", "own"), Some(7.0), "and a client's model before `*`");
    assert_eq!(usd("xai", "grok-4"), Some(3.0));
    assert_eq!(usd("xai", "grok-4-0709"), Some(3.0), "another id of the same model");
    assert_eq!(usd("xai", "grok-3"), Some(3.0));
    assert_eq!(usd("nvidia", "meta/llama-3.3-70b-instruct"), None, "what is not known is counted as unknown");
    assert_eq!(usd("builtin", "builtin"), Some(0.0));
    let price = known.prices.of("anthropic", "claude-sonnet-4-5").unwrap();
    assert_eq!((price.cached_input_per_m, price.cache_write_per_m), (Some(Micros(300_000)), Some(Micros(3_750_000))));
    let tokens = |provider: &str, model: &str| {
        let target = providers.target(&choice(provider, model)).map(|target| target.context_tokens).ok();
        let world = known.model_context_tokens.get(provider).and_then(|models| models.get(model)).copied();
        let world = world.unwrap_or_else(|| known.context_tokens[provider]);
        target.inspect(|target| assert_eq!(*target, world, "the world and the call agree on {model}")).unwrap_or(world)
    };
    assert_eq!(tokens("openai", "gpt-4.1"), 1_047_576);
    assert_eq!(tokens("openai", "unheard-of"), 128_000);
    assert_eq!(tokens("groq", "llama-3.3-70b-versatile"), 999, "the configuration said so");
    assert_eq!(tokens("ollama", "llama3.2"), 8_192, "a runtime serves what it was started with");
    assert_eq!(tokens("ollama", "big"), 4_000, "an operator's model has its own");
}

#[test]
fn pictures_are_kept_from_models_that_were_declared_to_take_none() {
    let providers = Providers::default();
    let takes = |provider: &str, model: &str| {
        let target =
            crate::model::provider::Target { provider: provider.into(), model: model.into(), ..Default::default() };
        providers.takes_images(&target)
    };
    assert!(takes("openai", "gpt-4o") && takes("perplexity", "sonar") && takes("openai", "unheard-of"));
    assert!(!takes("groq", "llama-3.3-70b-versatile") && !takes("openai", "gpt-3.5-turbo"));
}

#[test]
fn what_is_kept_is_read_again_and_damage_is_put_aside() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::new(dir.path().join("data"));
    let any = |_: &str| true;
    assert!(files.load(&any).is_empty());
    let mut kept = StoredCatalog { custom: vec![custom("p", "a/b", priced(1.0))], ..StoredCatalog::default() };
    kept.aliases.insert("x".into(), ModelName { provider: "p".into(), model: "a/b".into() });
    kept.removed.insert("opus".into());
    files.write_custom(&kept).unwrap();
    files.write_aliases(&kept).unwrap();
    let read = files.load(&any);
    assert_eq!((&read.custom, &read.aliases, &read.removed), (&kept.custom, &kept.aliases, &kept.removed));
    for text in ["", "{", "{\"models\": [{\"id\": \"\"}]}", "\u{0}"] {
        std::fs::write(dir.path().join("data/custom_models.json"), text).unwrap();
        let read = files.load(&any);
        assert_eq!((read.custom.len(), &read.aliases), (0, &kept.aliases), "{text:?}");
        let aside = std::fs::read_to_string(dir.path().join("data/custom_models.json.damaged")).unwrap();
        assert_eq!(aside, text);
    }
}

#[test]
fn an_older_fetched_catalog_does_not_hide_a_newer_release() {
    let fetched = |version: &str| {
        let text =
            format!("version = \"{version}\"\n[[models]]\nid = \"m\"\nprovider = \"openai\"\ncontext_window = 8000\n");
        let (base, skipped) = remote::parse(&text, &|_| true).unwrap();
        let sha256 = remote::sha256(text.as_bytes());
        let (at, url, document) = (String::new(), String::new(), text.into());
        let fetched = stored::Fetched { at, url, sha256, document, base: Arc::new(base), skipped };
        StoredCatalog { fetched: Some(Arc::new(fetched)), ..StoredCatalog::default() }
    };
    let newer = ModelCatalog::with(&fetched("2099-01-01")).table();
    assert_eq!((newer.models().len(), newer.origin(), newer.version()), (1, Origin::Remote, "2099-01-01"));
    let older = ModelCatalog::with(&fetched("2001-01-01")).table();
    assert_eq!((older.origin(), older.version()), (Origin::BuiltIn, embedded::VERSION));
    assert!(older.models().len() > 130);
    let dir = tempfile::tempdir().unwrap();
    let files = Files::new(dir.path().to_owned());
    files.write_fetched(&fetched("2099-01-01")).unwrap();
    assert_eq!(files.load(&|_| true).fetched.unwrap().base.models.len(), 1);
    let path = dir.path().join("model_catalog.json");
    let text = std::fs::read_to_string(&path).unwrap().replace("2099", "2098");
    std::fs::write(&path, text).unwrap();
    assert!(files.load(&|_| true).fetched.is_none(), "a changed text is not taken");
}
