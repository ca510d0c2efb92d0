//! Tests of the provider table: which key goes where, and which model is the default.

use agentsvc_components::manifest::{Manifest, ModelChoice};
use agentsvc_components::turn::outcome::FailureCode;

use super::{DriverKind, Error, ProviderSettings, Providers};

fn no_keys(_: &str) -> Option<String> {
    None
}

fn keys(name: &str) -> Option<String> {
    matches!(name, "OPENAI_API_KEY" | "GROQ_API_KEY" | "MY_KEY").then(|| format!(" value-of-{name} "))
}

fn choice(provider: &str, model: &str) -> ModelChoice {
    ModelChoice { provider: provider.into(), model: model.into(), ..ModelChoice::default() }
}

fn at(provider: &str, base_url: &str) -> ModelChoice {
    ModelChoice { base_url: Some(base_url.into()), ..choice(provider, "m") }
}

fn key_sent(providers: &Providers, choice: &ModelChoice) -> Option<String> {
    let target = providers.target(choice).map_err(|error| error.message);
    target.unwrap().key.map(|key| key.expose().to_owned())
}

#[test]
fn builtin_needs_nothing() {
    let target = Providers::default().with_environment(no_keys).target(&choice("builtin", "")).unwrap();
    assert_eq!((target.driver, target.model.as_ref(), target.key), (DriverKind::Builtin, "builtin", None));
}

#[test]
fn a_missing_key_names_its_variable() {
    let providers = Providers::default().with_environment(no_keys);
    let error = providers.target(&choice("openai", "gpt-4o-mini")).unwrap_err();
    assert_eq!(error.code, FailureCode::ProviderAuth);
    assert!(error.message.contains("OPENAI_API_KEY"), "{}", error.message);
    let providers = providers.naming(&["OTHER_KEY".into()], ModelChoice::default());
    let named = ModelChoice { api_key_env: Some("OTHER_KEY".into()), ..at("mine", "http://10.0.0.1/v1") };
    let error = providers.target(&named).unwrap_err();
    assert!(error.message.contains("OTHER_KEY"), "{}", error.message);
}

#[test]
fn a_key_goes_to_its_own_origin_and_nowhere_else() {
    let providers = Providers::default().with_environment(keys);
    let own = Some("value-of-OPENAI_API_KEY".to_owned());
    assert_eq!(key_sent(&providers, &choice("openai", "m")), own);
    assert_eq!(key_sent(&providers, &at("openai", "https://api.openai.com/v2")), own);
    for other in [
        "https://elsewhere.example/v1",
        "http://127.0.0.1:9/v1",
        "http://[::1]:9/v1",
        "http://api.openai.com/v1",
        "https://api.openai.com:8443/v1",
    ] {
        assert_eq!(key_sent(&providers, &at("openai", other)), None, "{other}");
    }
}

fn naming(variable: &str, choice: ModelChoice) -> ModelChoice {
    ModelChoice { api_key_env: Some(variable.into()), ..choice }
}

#[test]
fn a_named_variable_goes_to_its_providers_origin_or_is_listed() {
    let every = |name: &str| Some(format!("value-of-{name}"));
    let default = naming("CORP_KEY", at("corp", "https://corp.example/v1"));
    let providers = Providers::default().with_environment(every).trusting("https://corp.example/v1");
    let providers = providers.naming(&["MY_KEY".into(), "AGENTSVC_VAULT_KEY".into()], default);
    let own = "https://api.openai.com/v2";
    for (choice, key) in [
        (naming("OPENAI_API_KEY", choice("openai", "m")), Some("value-of-OPENAI_API_KEY")),
        (naming("OPENAI_API_KEY", at("mine", own)), Some("value-of-OPENAI_API_KEY")),
        (naming("MY_KEY", at("openai", "https://elsewhere.example/v1")), Some("value-of-MY_KEY")),
        (naming("MY_KEY", at("mine", "https://elsewhere.example/v1")), Some("value-of-MY_KEY")),
        (naming("CORP_KEY", at("corp", "https://corp.example/v2")), Some("value-of-CORP_KEY")),
        // What a manifest with an endpoint of its own gets from the default model without naming it.
        (naming("CORP_KEY", at("corp", "https://elsewhere.example/v1")), None),
        (naming("CORP_KEY", at("corp", "https://corp.example:8443/v1")), None),
    ] {
        assert_eq!(key_sent(&providers, &choice).as_deref(), key, "{choice:?}");
    }
    for choice in [
        naming("OPENAI_API_KEY", at("openai", "https://elsewhere.example/v1")),
        naming("OPENAI_API_KEY", at("openai", "http://127.0.0.1:9/v1")),
        naming("OPENAI_API_KEY", at("openai", "https://api.openai.com:8443/v1")),
        naming("OPENAI_API_KEY", at("openai", "http://api.openai.com/v1")),
        naming("OPENAI_API_KEY", choice("groq", "m")),
        naming("GROQ_API_KEY", at("mine", own)),
        naming("DB_PASSWORD", choice("openai", "m")),
        naming("DB_PASSWORD", at("mine", "http://127.0.0.1:9/v1")),
        naming("AGENTSVC_VAULT_KEY", at("mine", "https://elsewhere.example/v1")),
        naming("AGENTSVC_VAULT_KEY", choice("openai", "m")),
    ] {
        let error = providers.target(&choice).unwrap_err();
        let variable = choice.api_key_env.unwrap();
        assert_eq!(error.code, FailureCode::ProviderAuth);
        assert!(error.message.contains("`api_key_env`") && error.message.contains(&*variable), "{}", error.message);
        assert!(!error.message.contains("value-of"), "{}", error.message);
    }
}

#[test]
fn a_new_manifest_is_told_at_once_what_a_call_would_refuse() {
    let providers = Providers::default().with_environment(keys).naming(&["MY_KEY".into()], ModelChoice::default());
    let check = |model: ModelChoice, fallback: ModelChoice| {
        let manifest = Manifest { model, fallback_models: vec![fallback], ..Manifest::default() };
        providers.check_variables(&manifest).map_err(|refusal| refusal.field.unwrap())
    };
    let elsewhere = || at("openai", "https://elsewhere.example/v1");
    let plain = || choice("groq", "m");
    assert_eq!(check(elsewhere(), plain()), Ok(()));
    assert_eq!(check(naming("MY_KEY", elsewhere()), plain()), Ok(()));
    assert_eq!(check(naming("OPENAI_API_KEY", choice("openai", "m")), naming("GROQ_API_KEY", plain())), Ok(()));
    assert_eq!(check(naming("OPENAI_API_KEY", ModelChoice::default()), plain()), Ok(()), "the default is openai");
    let refused = |field: &str| Err(field.to_owned());
    assert_eq!(check(naming("OPENAI_API_KEY", elsewhere()), plain()), refused("model.api_key_env"));
    assert_eq!(check(naming("DB_PASSWORD", ModelChoice::default()), plain()), refused("model.api_key_env"));
    assert_eq!(check(plain(), naming("OPENAI_API_KEY", plain())), refused("fallback_models[0].api_key_env"));
    assert_eq!(
        check(elsewhere(), naming("OPENAI_API_KEY", choice("", "x"))),
        refused("fallback_models[0].api_key_env")
    );
}

#[test]
fn a_key_goes_to_an_origin_that_the_configuration_trusts() {
    let providers = Providers::default().with_environment(keys).trusting("https://Proxy.example/v1");
    let own = Some("value-of-OPENAI_API_KEY".to_owned());
    assert_eq!(key_sent(&providers, &at("openai", "https://proxy.example/v1")), own);
    assert_eq!(key_sent(&providers, &at("openai", "https://elsewhere.example/v1")), None);
    assert_eq!(key_sent(&providers, &at("openai", "https://proxy.example:8443/v1")), None);
}

#[test]
fn an_unknown_provider_needs_a_base_url() {
    let providers = Providers::default().with_environment(no_keys);
    let error = providers.target(&choice("nowhere", "m")).unwrap_err();
    assert_eq!(error.code, FailureCode::UnknownProvider);
    assert!(error.message.contains("openai"), "{}", error.message);
    let target = providers.target(&at("nowhere", "http://10.0.0.1:8000/v1")).unwrap();
    assert_eq!((target.driver, target.provider.as_ref()), (DriverKind::OpenAi, "nowhere"));
    assert_eq!(providers.target(&at("nowhere", "file:///etc")).unwrap_err().code, FailureCode::ProviderRefused);
    assert_eq!(providers.target(&choice("ollama", "")).unwrap_err().code, FailureCode::UnknownProvider);
}

#[test]
fn the_default_model_follows_config_then_keys_then_builtin() {
    let with_keys = Providers::default().with_environment(keys);
    let without = Providers::default().with_environment(no_keys);
    let empty = ModelChoice::default();
    assert_eq!(with_keys.default_model(&empty), choice("openai", "gpt-4o-mini"));
    assert_eq!(without.default_model(&empty), choice("builtin", "builtin"));
    assert_eq!(with_keys.default_model(&choice("groq", "")), choice("groq", "llama-3.1-8b-instant"));
    assert_eq!(with_keys.default_model(&choice("builtin", "")), choice("builtin", "builtin"));
    assert_eq!(without.default_model(&choice("mine", "m")), choice("mine", "m"));
}

#[test]
fn settings_override_and_add() {
    let setting = |name: &str, base_url: Option<&str>| ProviderSettings {
        name: name.to_owned(),
        base_url: base_url.map(str::to_owned),
        ..ProviderSettings::default()
    };
    let moved = ProviderSettings { context_tokens: Some(9), ..setting("openai", Some("https://proxy.example/v1")) };
    let open = ProviderSettings { api_key_env: Some(String::new()), ..setting("groq", None) };
    let mine = ProviderSettings { api_key_env: Some("MY_KEY".to_owned()), ..setting("mine", Some("http://10.0.0.1")) };
    let providers = Providers::new(vec![moved, open, mine]).unwrap().with_environment(keys);
    assert_eq!(key_sent(&providers, &choice("openai", "m")), Some("value-of-OPENAI_API_KEY".to_owned()));
    assert_eq!(providers.target(&choice("openai", "m")).unwrap().context_tokens, 9);
    assert_eq!(key_sent(&providers, &choice("groq", "m")), None);
    assert_eq!(key_sent(&providers, &choice("mine", "m")), Some("value-of-MY_KEY".to_owned()));

    let error = Providers::new(vec![setting("new", None)]).unwrap_err();
    assert_eq!(error, Error::NoBaseUrl { name: "new".to_owned() });
    let error = Providers::new(vec![setting("new", Some("ftp://x"))]).unwrap_err();
    assert_eq!(error, Error::BadBaseUrl { name: "new".to_owned() });
}

#[test]
fn a_secret_is_not_shown() {
    let target = Providers::default().with_environment(keys).target(&choice("openai", "m")).unwrap();
    assert!(!format!("{target:?}").contains("value-of"));
}

#[test]
fn every_variable_of_a_secret_is_known_and_no_region_is_one() {
    let providers = Providers::new(vec![ProviderSettings {
        name: "mine".to_owned(),
        base_url: Some("http://10.0.0.1".to_owned()),
        api_key_env: Some("MY_KEY".to_owned()),
        ..ProviderSettings::default()
    }]);
    let providers = providers.unwrap();
    let variables: Vec<String> = providers.key_variables().map(String::from).collect();
    for name in ["MY_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
        assert!(variables.iter().any(|variable| variable == name), "{name}");
    }
    assert!(!variables.iter().any(|variable| variable == "AWS_REGION"));
}

#[test]
fn a_key_that_is_there_for_other_purposes_chooses_no_default_model() {
    let with = |name: &str| matches!(name, "GITHUB_TOKEN" | "HF_TOKEN" | "AWS_ACCESS_KEY_ID").then(|| "x".to_owned());
    let providers = Providers::default().with_environment(with);
    assert_eq!(providers.default_model(&ModelChoice::default()), choice("builtin", "builtin"));
}

#[test]
fn a_provider_with_an_endpoint_for_each_account_must_be_told_it() {
    let with = |_: &str| Some("x".to_owned());
    let error = Providers::default().with_environment(with).target(&choice("azure", "gpt-4o")).unwrap_err();
    assert!(error.message.contains("[providers.azure] base_url"), "{}", error.message);
    let placed = ProviderSettings {
        name: "azure".to_owned(),
        base_url: Some("https://mine.openai.azure.com".to_owned()),
        ..ProviderSettings::default()
    };
    let target =
        Providers::new(vec![placed]).unwrap().with_environment(with).target(&choice("azure", "gpt-4o")).unwrap();
    assert_eq!(
        (target.driver, target.context_tokens, target.answer_tokens_max),
        (DriverKind::Azure, 128_000, Some(16_384))
    );
}

#[test]
fn an_alias_may_be_the_default_model() {
    let with_keys = Providers::default().with_environment(keys);
    assert_eq!(with_keys.default_model(&choice("", "sonnet")), choice("anthropic", "claude-sonnet-4-6"));
    assert_eq!(with_keys.default_model(&choice("groq", "sonnet")), choice("groq", "sonnet"));
    let placed = ModelChoice { base_url: Some("http://10.0.0.1/v1".into()), ..choice("", "sonnet") };
    assert_eq!(&*with_keys.default_model(&placed).provider, "openai");
}
