//! Providers, the default model and prices, which concern each other.

use std::path::Path;

use agentsvc_components::Micros;

use crate::config::{Config, Document};
use crate::kernel::config::text::base_url;
use crate::model::provider::DriverKind;
use crate::provider::config::provider_url;

fn default_model(text: &str) -> Result<String, String> {
    let loaded = Config::parse(text, Path::new("c")).map_err(|error| error.to_string())?;
    let (_, model) = loaded.config.models().unwrap();
    Ok(format!("{}/{}", model.provider, model.model))
}

#[test]
fn gaps_are_filled_by_the_provider() {
    let table = |text: &str| default_model(&format!("[default_model]\n{text}"));
    assert_eq!(table("provider = \"builtin\"").unwrap(), "builtin/builtin");
    assert_eq!(table("provider = \"openai\"").unwrap(), "openai/gpt-4o-mini");
    assert_eq!(table("base_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"").unwrap(), "openai/m");
    assert_eq!(table("provider = \"mine\"\nbase_url = \"http://h/v1\"\nmodel = \"m\"").unwrap(), "mine/m");
}

#[test]
fn a_provider_that_cannot_answer_is_a_problem() {
    let error = default_model("[default_model]\nprovider = \"opnai\"\n").unwrap_err();
    let expected = "unknown provider without a `base_url`; did you mean `openai`?";
    assert_eq!(error, format!("c:2:12: default_model.provider: {expected}"));
    let error = default_model("[default_model]\nprovider = \"ollama\"\n").unwrap_err();
    assert!(error.starts_with("c:2:12: default_model.provider: needs `model`"), "{error}");
    let error = default_model("[world]\n[providers.mine]\napi_key_env = \"X\"\n").unwrap_err();
    assert!(error.starts_with("c:2:1: providers.mine: unknown provider mine"), "{error}");
    let known = "[providers.mine]\nbase_url = \"http://h/v1\"\n[default_model]\nprovider = \"mine\"\nmodel = \"m\"\n";
    assert_eq!(default_model(known).unwrap(), "mine/m");
}

#[test]
fn providers_are_kept_by_name() {
    let text =
        "[providers.local]\nbase_url = \"http://127.0.0.1:8080/v1/\"\n[providers.\"x y\"]\nbase_url = \"http://h\"\n";
    let providers = Config::parse(text, Path::new("c")).unwrap().config.providers;
    assert_eq!(providers["local"].base_url.as_deref(), Some("http://127.0.0.1:8080/v1"));
    assert_eq!(providers["x y"].base_url.as_deref(), Some("http://h"));
}

#[test]
fn a_driver_is_one_of_those_that_speak_with_somebody() {
    let of = |word: &str| {
        let text = format!("[providers.mine]\nbase_url = \"http://h\"\ndriver = \"{word}\"\n");
        let loaded = Config::parse(&text, Path::new("c")).map_err(|error| error.to_string())?;
        let (providers, _) = loaded.config.models().map_err(|error| error.to_string())?;
        Ok::<_, String>(providers.get("mine").map(|provider| provider.driver))
    };
    for (word, kind) in DriverKind::SPOKEN {
        assert_eq!((of(word).unwrap(), DriverKind::parse(word)), (Some(*kind), Some(*kind)));
    }
    assert_eq!(DriverKind::SPOKEN.len() + 1, DriverKind::ALL.len(), "all but the built-in model");
    for word in ["builtin", "claude", ""] {
        let problem = of(word).unwrap_err();
        assert!(problem.contains("providers.mine.driver: must be one of `openai`"), "{problem}");
    }
    let text = "[providers.openai]\ndriver = \"openai-responses\"\n[providers.plain]\nbase_url = \"http://h\"\n";
    let (providers, _) = Config::parse(text, Path::new("c")).unwrap().config.models().unwrap();
    let driver = |name: &str| providers.get(name).map(|provider| provider.driver);
    assert_eq!(driver("openai"), Some(DriverKind::OpenAiResponses), "that of a known one can be another");
    assert_eq!((driver("plain"), driver("groq")), (Some(DriverKind::OpenAi), Some(DriverKind::OpenAi)));
}

#[test]
fn a_url_may_say_what_its_driver_reads() {
    for url in ["https://h?api-version=2025-04-01-preview", "http://127.0.0.1:11434/?keep_alive=30m"] {
        assert_eq!(provider_url(url).as_deref(), Ok(url), "what a driver reads is no secret");
        assert!(base_url(url).is_err(), "{url}");
    }
    for url in ["https://h/?key=1", "https://h/?api-version=1&key=1", "https://u:p@h/?api-version=1", "ftp://h"] {
        assert!(provider_url(url).is_err(), "{url}");
    }
}

#[test]
fn limits_and_prices_become_micro_dollars() {
    let text = "[budget]\ndaily_limit_usd = 10\nagent_monthly_limit_usd = 0.1\nhourly_token_limit = 5\n\
                [prices.\"openai/gpt-4o\"]\ninput_per_m = 2.5\noutput_per_m = 10.0\n[prices.\"x/*\"]\n";
    let config = Config::parse(text, Path::new("c")).unwrap().config;
    let settings = config.budget.settings();
    assert_eq!(settings.global.in_force().daily, Some(Micros(10_000_000)));
    assert_eq!((settings.global.in_force().monthly, settings.global.hourly_tokens), (None, Some(5)));
    assert_eq!(settings.agent.monthly, Some(Micros(100_000)));
    assert_eq!(config.prices["openai/gpt-4o"].price().input_per_m, Micros(2_500_000));
    assert!(config.prices["x/*"].price().is_free());
}

#[test]
fn what_is_no_amount_is_refused() {
    let text = "[budget]\ndaily_limit_usd = -1\nmonthly_limit_usd = \"ten\"\n[prices.gpt]\ninput_per_m = nan\n";
    let error = Config::parse(text, Path::new("c")).unwrap_err().to_string();
    assert!(error.contains("c:2:19: budget.daily_limit_usd: must be 0 to 1000000000000"), "{error}");
    assert!(error.contains("c:3:21: budget.monthly_limit_usd: must be a number, not a string"), "{error}");
    assert!(error.contains("prices.gpt.input_per_m: must be 0 to 1000000000000"), "{error}");
    assert!(error.contains("prices.gpt: must be named \"<provider>/<model>\""), "{error}");
}
