//! The routes of the configuration over one that is played.

use crate::http::error_codes;
use std::sync::Arc;

use agentsvc_components::Actor;
use hyper::Request;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::config::configuration::{
    ConfigError, ConfigInit, ConfigInitialized, ConfigProblem, ConfigReloaded, ConfigSet, Configuration, ProviderKeys,
};
use crate::http::reply;
use crate::http::settings::ApiSettings;
use crate::model::catalog::DefaultModel;
use crate::provider::accounts::ProviderError;
use crate::testing::{front, get, send};

/// A configuration that takes every first configuration but that of "edited".
struct Played;

impl Configuration for Played {
    fn shown(&self) -> Value {
        json!({ "log_level": "info" })
    }

    fn in_force(&self) -> Value {
        self.shown()
    }

    fn in_force_toml(&self) -> Result<String, ConfigError> {
        Ok("log_level = \"info\"\n".to_owned())
    }

    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }

    fn set(&self, _: Actor, path: &str, value: &Value) -> Result<ConfigSet, ConfigError> {
        Ok(ConfigSet {
            status: "applied",
            path: path.to_owned(),
            value: value.clone(),
            restart_required: false,
            also_changed: vec![],
        })
    }

    fn reload(&self, _: Actor) -> Result<ConfigReloaded, ConfigError> {
        let problem = |line| ConfigProblem { line, column: 1, key: "a".to_owned(), message: "is wrong".to_owned() };
        Err(ConfigError::Invalid(vec![problem(1), problem(7)]))
    }

    fn init(&self, _: Actor, wanted: &ConfigInit) -> Result<ConfigInitialized, ConfigError> {
        let provider = wanted.provider.clone().unwrap_or_default();
        if provider == "edited" {
            return Err(ConfigError::Conflict("it was edited".to_owned()));
        }
        Ok(ConfigInitialized {
            status: "initialized",
            config_created: false,
            changed: Vec::new(),
            provider,
            model: String::new(),
            key_present: false,
            api_key_env: None,
        })
    }
}

/// Keeps keys in memory, but none of "full", and breaks off with "broken".
#[derive(Default)]
struct Kept(Mutex<Vec<(String, String)>>);

impl ProviderKeys for Kept {
    fn check(&self, _: &str, key: &str) -> Result<(), String> {
        if key.contains(' ') { Err("api_key: holds a space".to_owned()) } else { Ok(()) }
    }

    fn keep(&self, provider: &str, key: &str) -> Result<(), ProviderError> {
        if provider == "full" {
            return Err(ProviderError::NotKept {
                code: error_codes::VAULT_UNAVAILABLE,
                message: "there is no room".to_owned(),
            });
        }
        assert_ne!(provider, "broken");
        self.0.lock().push((provider.to_owned(), key.to_owned()));
        Ok(())
    }
}

#[tokio::test]
async fn a_key_that_comes_with_the_first_configuration_is_kept_and_not_shown() {
    let api = front(ApiSettings::default());
    let kept = Arc::new(Kept::default());
    let init = |body: Value| {
        let api = api.clone();
        async move {
            let response = send(&api, Request::post("/api/init"), body.to_string()).await;
            (response.status().as_u16(), reply::collect(response).await)
        }
    };
    assert_eq!(init(json!({})).await.0, 503, "nobody knows the configuration yet");
    api.services.provide::<dyn Configuration>(Arc::new(Played));
    let (status, body) = init(json!({ "provider": "p", "api_key": "sk-1" })).await;
    assert_eq!((status, &body["field"]), (400, &json!("api_key")), "nobody keeps keys");
    api.services.provide::<dyn ProviderKeys>(Arc::clone(&kept) as _);
    let (status, body) = init(json!({ "provider": "p", "api_key": "sk-1" })).await;
    assert_eq!((status, &body["key_present"]), (200, &json!(true)));
    assert!(!body.to_string().contains("sk-1"));
    assert_eq!(*kept.0.lock(), [("p".to_owned(), "sk-1".to_owned())]);
    let (status, body) = init(json!({ "provider": "full", "api_key": "sk-2" })).await;
    assert_eq!((status, &body["code"], &body["error"]), (500, &json!("vault_unavailable"), &json!("there is no room")));
    assert_eq!(body["initialized"]["provider"], "full", "the configuration is written, and it says so: {body}");
    let (status, body) = init(json!({ "provider": "broken", "api_key": "sk-2" })).await;
    assert_eq!((status, &body["code"]), (500, &json!("not_stored")));
    assert_eq!(body["initialized"]["provider"], "broken", "{body}");
    let (status, body) = init(json!({ "provider": "edited", "api_key": "sk-3" })).await;
    assert_eq!((status, &body["code"]), (409, &json!("config_exists")));
    assert_eq!(kept.0.lock().len(), 1, "a refused first configuration keeps no key");
}

#[tokio::test]
async fn errors_have_their_statuses_and_problems_their_places() {
    let api = front(ApiSettings::default());
    assert_eq!(get(&api, "/api/config").await.status(), 503);
    api.services.provide::<dyn Configuration>(Arc::new(Played));
    assert_eq!(reply::collect(get(&api, "/api/config").await).await["log_level"], "info");
    let response = send(&api, Request::post("/api/config/reload"), "").await;
    assert_eq!(response.status(), 400);
    let body = reply::collect(response).await;
    assert_eq!(body["error"], "config.toml:1:1: a: is wrong (and 1 more)");
    assert_eq!(body["problems"][1], json!({ "line": 7, "column": 1, "key": "a", "message": "is wrong" }));
    let refusal = agentsvc_components::Refusal::busy("full", 3);
    let error = crate::http::error::Error::from(ConfigError::NotTaken { message: "nothing was changed", refusal });
    assert_eq!((error.status().as_u16(), error.retry_after_secs()), (503, Some(3)));
}

#[tokio::test]
async fn new_settings_are_shown_and_only_new_access_makes_a_new_policy() {
    let api = front(ApiSettings::default());
    let before = api.access.policy();
    api.reconfigure(ApiSettings { restart_count: 7, ..ApiSettings::default() });
    assert!(Arc::ptr_eq(&before, &api.access.policy()), "what clients have used is not forgotten");
    assert_eq!(api.settings_now().restart_count, 7);
    let default = DefaultModel { model: "m".to_owned(), ..DefaultModel::default() };
    api.services.provide(Arc::new(default));
    assert_eq!(reply::collect(get(&api, "/api/status").await).await["default_model"], "m");
    api.reconfigure(ApiSettings { api_key: "k".to_owned(), ..ApiSettings::default() });
    assert_eq!(get(&api, "/api/status").await.status(), 401);
}
