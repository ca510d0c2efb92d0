//! Tests of what clients set about providers: what the vault keeps, and in which order keys count.

use std::path::Path;
use std::sync::Arc;

use agentsvc_components::manifest::ModelChoice;

use super::*;
use crate::kernel::vault::KeySource;
use crate::model::provider::Providers;

fn overrides(dir: &Path) -> Arc<Overrides> {
    Arc::new(Overrides::new(Vault::new(dir.join("vault"), KeySource::File)))
}

fn environment(name: &str) -> Option<String> {
    matches!(name, "OPENAI_API_KEY" | "MINE").then(|| format!("value-of-{name}"))
}

fn providers(overrides: &Arc<Overrides>, environment: fn(&str) -> Option<String>) -> Providers {
    Providers::default().with_environment(environment).with_overrides(Arc::clone(overrides))
}

fn choice(provider: &str) -> ModelChoice {
    ModelChoice { provider: provider.into(), model: "m".into(), ..ModelChoice::default() }
}

fn sent(providers: &Providers, choice: &ModelChoice) -> Option<String> {
    providers.target(choice).unwrap().key.map(|key| key.expose().to_owned())
}

fn grant(token: &str, expires_at: Option<u64>) -> Grant {
    Grant { access_token: Secret::new(token), refresh_token: None, expires_at }
}

#[test]
fn a_named_variable_comes_before_the_vault_and_the_vault_before_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    let kept = overrides(dir.path());
    let providers = providers(&kept, environment).naming(&["MINE", "UNSET"].map(Box::from), ModelChoice::default());
    assert_eq!(sent(&providers, &choice("openai")).as_deref(), Some("value-of-OPENAI_API_KEY"));
    kept.put_key("openai", Secret::new("of-the-vault")).unwrap();
    assert_eq!(sent(&providers, &choice("openai")).as_deref(), Some("of-the-vault"));
    let named = |variable: &str| ModelChoice { api_key_env: Some(variable.into()), ..choice("openai") };
    assert_eq!(sent(&providers, &named("MINE")).as_deref(), Some("value-of-MINE"));
    assert_eq!(sent(&providers, &named("UNSET")).as_deref(), Some("of-the-vault"));
    // It goes to the provider's own origin, and nowhere else.
    let at = |url: &str| ModelChoice { base_url: Some(url.into()), ..choice("openai") };
    assert_eq!(sent(&providers, &at("https://elsewhere.example/v1")), None);
    assert_eq!(sent(&providers, &at("http://127.0.0.1:9/v1")), None);
    assert!(kept.remove("openai").unwrap() && !kept.remove("openai").unwrap());
    assert_eq!(sent(&providers, &choice("openai")).as_deref(), Some("value-of-OPENAI_API_KEY"));
}

#[test]
fn a_key_lasts_and_is_nowhere_in_clear() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["openai", "groq"];
    overrides(dir.path()).put_key("groq", Secret::new("hunter2hunter2")).unwrap();
    let kept = overrides(dir.path());
    let providers = providers(&kept, |_| None);
    assert_eq!(kept.source("groq"), Some("vault"), "known before it is opened");
    assert_eq!(providers.default_model(&ModelChoice::default()).provider.as_ref(), "groq");
    assert!(!kept.open_all());
    assert_eq!(sent(&providers, &choice("groq")).as_deref(), Some("hunter2hunter2"));
    assert!(!format!("{kept:?} {providers:?}").contains("hunter2"));
    for entry in std::fs::read_dir(dir.path().join("vault")).unwrap() {
        let content = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!content.windows(7).any(|window| window == b"hunter2"));
    }
    kept.look_for(names.into_iter());
    assert!(kept.remove("groq").unwrap());
    assert_eq!(overrides(dir.path()).source("groq"), None);
}

#[test]
fn a_vault_that_does_not_open_leaves_the_environment_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    overrides(dir.path()).put_key("openai", Secret::new("k")).unwrap();
    overrides(dir.path()).put_key("groq", Secret::new("k")).unwrap();
    std::fs::remove_file(dir.path().join("vault/vault.key")).unwrap();
    let kept = overrides(dir.path());
    let providers = providers(&kept, environment);
    assert!(kept.open_all());
    assert_eq!(sent(&providers, &choice("openai")).as_deref(), Some("value-of-OPENAI_API_KEY"));
    let error = providers.target(&choice("groq")).unwrap_err();
    assert!(error.message.contains("cannot be read") && error.message.contains("GROQ_API_KEY"), "{}", error.message);
    assert!(kept.problem("groq").is_some() && kept.source("groq").is_none());
    assert!(kept.put_key("groq", Secret::new("k2")).is_err(), "nothing is written with another key");
    assert!(kept.remove("groq").unwrap());
}

#[test]
fn a_sign_in_gives_a_token_while_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    let (kept, now) = (overrides(dir.path()), now_secs());
    let token = |name: &str| kept.key(name);
    kept.put_login("plain", Login::new(grant("a", None), false)).unwrap();
    assert_eq!(token("plain"), KeptKey::There(Secret::new("a")));
    assert!(kept.getting_ready("plain").is_none());
    kept.put_login("ended", Login::new(grant("a", Some(now - 1)), false)).unwrap();
    assert!(matches!(token("ended"), KeptKey::Lost(why) if why.contains("sign in again")));
    // One that is exchanged has no token before it was.
    kept.put_login("exchanged", Login::new(grant("g", None), true)).unwrap();
    assert!(matches!(token("exchanged"), KeptKey::Lost(_)));
    let session = Session { token: Secret::new("s"), expires_at: now + 30 };
    kept.change_login("exchanged", &grant("another", None), |login| login.session = Some(session.clone()));
    assert!(matches!(token("exchanged"), KeptKey::Lost(_)), "another sign-in took its place meanwhile");
    kept.change_login("exchanged", &grant("g", None), |login| login.session = Some(session));
    assert_eq!(token("exchanged"), KeptKey::There(Secret::new("s")));
    assert!(kept.login("exchanged").unwrap().is_stale(now), "it ends within a minute");
    // A restart keeps the grant, and the kind of it.
    let again = overrides(dir.path());
    again.look_for(["exchanged"].into_iter());
    let login = again.login("exchanged").unwrap();
    assert_eq!((login.is_exchanged, login.session, login.grant), (true, None, grant("g", None)));
}

#[test]
fn names_in_the_vault_are_plain_and_differ() {
    assert_eq!(secret_name("github-copilot"), "provider-github-copilot");
    let names = ["x y", "X", "x_y", "", &"a".repeat(41), &"a".repeat(42), "é"].map(secret_name);
    let distinct: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    let dir = tempfile::tempdir().unwrap();
    let vault = Vault::new(dir.path().join("vault"), KeySource::File);
    assert!(names.iter().all(|name| vault.put(name, b"x").is_ok()), "{names:?}");
}

#[test]
fn an_endpoint_of_the_api_takes_the_place_of_the_configured_one() {
    let dir = tempfile::tempdir().unwrap();
    let kept = Arc::new(overrides(dir.path()));
    let providers = providers(&kept, environment);
    kept.put_key("openai", Secret::new("for-the-first-place")).unwrap();
    kept.set_base_urls([("openai".into(), "https://proxy.example/v1".into())].into());
    let refused = providers.target(&choice("openai")).unwrap_err();
    assert!(refused.message.contains("was set for another base URL"), "neither key goes there: {refused:?}");
    kept.put_key("openai", Secret::new("for-the-proxy")).unwrap();
    let target = providers.target(&choice("openai")).unwrap();
    assert_eq!(target.base_url.as_ref(), "https://proxy.example/v1");
    assert!(target.key.as_ref().is_some_and(|key| key.expose() == "for-the-proxy") && target.bounds_completion);
    // After a start, too.
    let again = overrides(dir.path());
    again.look_for(["openai"].into_iter());
    assert_eq!(again.key_origin("openai").as_deref(), Some("https://proxy.example"));
    kept.set_base_urls(BTreeMap::new());
    let target = providers.target(&choice("openai")).unwrap();
    assert_eq!(target.base_url.as_ref(), "https://api.openai.com/v1");
    assert!(target.key.is_some_and(|key| key.expose() != "for-the-proxy"), "it is the environment's");
}
