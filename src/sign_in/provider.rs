//! What identity providers say of themselves: their endpoints (OpenID Connect Discovery) and their keys, which change.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::Url;
use serde_json::Value;
use tokio::time::Instant;

use super::config::ProviderSettings;
use super::jws::{self, Claims, Fault, Key};
use crate::kernel::oauth::{Reach, host, secure};

/// How long endpoints are used before they are asked for again.
const FRESH: Duration = Duration::from_secs(3_600);
/// Times that keys are fetched anew in [`REFRESH_PERIOD`], for tokens that none of the known ones has signed.
const REFRESHES_MAX: usize = 6;
const REFRESH_PERIOD: Duration = Duration::from_secs(60);

/// Where a provider is asked for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoints {
    /// As tokens write it.
    pub(super) issuer: String,
    pub(super) authorization: Url,
    pub(super) token: Url,
    pub(super) jwks: Url,
    pub(super) userinfo: Option<Url>,
    pub(super) introspection: Option<Url>,
    /// The client secret goes into the form, not into a header.
    pub(super) posts_secret: bool,
    /// Answers name the provider (RFC 9207).
    pub(super) names_itself: bool,
}

impl Endpoints {
    /// What the settings and the discovery document say.
    ///
    /// # Errors
    /// What is missing or cannot be used, in words that continue a sentence about the provider.
    fn read(settings: &ProviderSettings, document: &Value) -> Result<Self, String> {
        let plain = |issuer: &str| issuer.trim_end_matches('/').to_owned();
        let named = document["issuer"].as_str();
        if named.is_some_and(|named| plain(named) != plain(&settings.issuer)) {
            return Err("names another issuer in its discovery document".to_owned());
        }
        let endpoint = |set: Option<&str>, key: &str| {
            let found = set.or_else(|| document[key].as_str()).map(secure).transpose();
            found.map_err(|why| format!("has an endpoint that cannot be used: `{key}` {why}"))
        };
        let needed = |set, key: &str| endpoint(set, key)?.ok_or_else(|| format!("does not say `{key}`"));
        let lists = |key: &str, word: &str| document[key].as_array().is_some_and(|all| all.iter().any(|it| it == word));
        let methods = "token_endpoint_auth_methods_supported";
        Ok(Self {
            issuer: named.unwrap_or(&settings.issuer).to_owned(),
            authorization: needed(settings.auth_url.as_deref(), "authorization_endpoint")?,
            token: needed(settings.token_url.as_deref(), "token_endpoint")?,
            jwks: needed(settings.jwks_uri.as_deref(), "jwks_uri")?,
            userinfo: endpoint(settings.userinfo_url.as_deref(), "userinfo_endpoint")?,
            introspection: endpoint(None, "introspection_endpoint")?,
            posts_secret: !lists(methods, "client_secret_basic") && lists(methods, "client_secret_post"),
            names_itself: document["authorization_response_iss_parameter_supported"] == true,
        })
    }
}

/// The keys of a provider.
#[derive(Default)]
struct Keys {
    list: Option<Vec<Key>>,
    /// When they were fetched anew, within the period.
    refreshes: VecDeque<Instant>,
}

/// A provider that has been asked.
pub(super) struct Provider {
    pub(super) settings: ProviderSettings,
    pub(super) endpoints: Endpoints,
    found: Instant,
    /// One asks for keys at a time.
    keys: tokio::sync::Mutex<Keys>,
}

impl Provider {
    /// Asks a provider who it is.
    async fn find(settings: &ProviderSettings, reach: &Reach) -> Result<Self, String> {
        let is_set = settings.auth_url.is_some() && settings.token_url.is_some() && settings.jwks_uri.is_some();
        let document = if is_set { Value::Null } else { discovered(settings, reach).await? };
        let endpoints = Endpoints::read(settings, &document)?;
        Ok(Self { settings: settings.clone(), endpoints, found: Instant::now(), keys: tokio::sync::Mutex::default() })
    }

    /// What a token says that the provider signed. Keys that are not known are asked for, a bounded number of times.
    ///
    /// # Errors
    /// A sentence about the token, or about the provider.
    pub(super) async fn verify(&self, token: &str, reach: &Reach) -> Result<Result<Claims, Fault>, String> {
        let mut keys = self.keys.lock().await;
        if let Some(list) = &keys.list {
            let read = jws::verify(token, list);
            if read != Err(Fault::Key) || !keys.may_refresh(Instant::now()) {
                return Ok(read);
            }
        }
        let set = reach.document(&self.endpoints.jwks).await?;
        let list = jws::keys(&set.ok_or_else(|| format!("{} has no keys", host(&self.endpoints.jwks)))?);
        let read = jws::verify(token, &list);
        keys.list = Some(list);
        Ok(read)
    }
}

impl Keys {
    fn may_refresh(&mut self, now: Instant) -> bool {
        while self.refreshes.front().is_some_and(|at| now.duration_since(*at) >= REFRESH_PERIOD) {
            self.refreshes.pop_front();
        }
        let may = self.refreshes.len() < REFRESHES_MAX;
        if may {
            self.refreshes.push_back(now);
        }
        may
    }
}

async fn discovered(settings: &ProviderSettings, reach: &Reach) -> Result<Value, String> {
    let place = format!("{}/.well-known/openid-configuration", settings.issuer.trim_end_matches('/'));
    let place = secure(&place).map_err(|why| format!("the issuer {why}"))?;
    let document = reach.document(&place).await?;
    document.ok_or_else(|| format!("{} has no discovery document", host(&place)))
}

/// The providers that have been asked, by their ids.
#[derive(Default)]
pub(super) struct Known(Mutex<HashMap<String, Arc<Provider>>>);

impl Known {
    /// A provider of the configuration, asked now or a while ago.
    ///
    /// # Errors
    /// A sentence: it cannot be reached, or cannot be used.
    pub(super) async fn get(&self, settings: &ProviderSettings, reach: &Reach) -> Result<Arc<Provider>, String> {
        let known = self.0.lock().get(&settings.id).cloned();
        let is_good = |it: &Arc<Provider>| it.settings == *settings && it.found.elapsed() < FRESH;
        if let Some(known) = known.filter(is_good) {
            return Ok(known);
        }
        let found = Arc::new(Provider::find(settings, reach).await?);
        self.0.lock().insert(settings.id.clone(), Arc::clone(&found));
        Ok(found)
    }

    /// Forgets all but these.
    pub(super) fn keep(&self, settings: &[ProviderSettings]) {
        self.0.lock().retain(|id, _| settings.iter().any(|it| it.id == *id));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings() -> ProviderSettings {
        ProviderSettings {
            id: "id".into(),
            display_name: "id".into(),
            issuer: "https://id.example".into(),
            client_id: "me".into(),
            client_secret_env: None,
            redirect_url: None,
            scopes: vec!["openid".into()],
            audience: None,
            allowed_domains: Vec::new(),
            is_limited: false,
            auth_url: None,
            token_url: None,
            userinfo_url: None,
            jwks_uri: None,
        }
    }

    fn document() -> Value {
        json!({ "issuer": "https://id.example", "authorization_endpoint": "https://id.example/a",
            "token_endpoint": "https://id.example/t", "jwks_uri": "https://id.example/k" })
    }

    #[test]
    fn endpoints_are_those_of_the_document_unless_they_are_set() {
        let found = Endpoints::read(&settings(), &document()).unwrap();
        assert_eq!((found.token.as_str(), found.posts_secret), ("https://id.example/t", false));
        let mut only_post = document();
        only_post["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
        assert!(Endpoints::read(&settings(), &only_post).unwrap().posts_secret);
        let url = |text: &str| Some(Box::<str>::from(text));
        let set = ProviderSettings {
            auth_url: url("https://h/a"),
            token_url: url("https://h/t"),
            jwks_uri: url("https://h/k"),
            ..settings()
        };
        let found = Endpoints::read(&set, &Value::Null).unwrap();
        assert_eq!((found.token.as_str(), found.issuer.as_str()), ("https://h/t", "https://id.example"));
        // The issuer of tokens is written as the document writes it.
        let mut slash = document();
        slash["issuer"] = "https://id.example/".into();
        assert_eq!(Endpoints::read(&settings(), &slash).unwrap().issuer, "https://id.example/");
    }

    #[test]
    fn documents_that_do_not_fit_are_not_used() {
        for (key, value, why) in [
            ("issuer", json!("https://evil.example"), "another issuer"),
            ("token_endpoint", json!("http://10.0.0.1/t"), "`token_endpoint`"),
            ("token_endpoint", json!("file:///etc/passwd"), "`token_endpoint`"),
            ("authorization_endpoint", json!("javascript:alert(1)"), "`authorization_endpoint`"),
            ("jwks_uri", json!(null), "does not say `jwks_uri`"),
            ("userinfo_endpoint", json!("https://u:p@h/"), "`userinfo_endpoint`"),
        ] {
            let mut changed = document();
            changed[key] = value;
            let error = Endpoints::read(&settings(), &changed).unwrap_err();
            assert!(error.contains(why), "{why}: {error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn keys_are_asked_for_a_bounded_number_of_times() {
        let mut keys = Keys::default();
        assert_eq!((0..20).filter(|_| keys.may_refresh(Instant::now())).count(), REFRESHES_MAX);
        tokio::time::advance(REFRESH_PERIOD).await;
        assert!(keys.may_refresh(Instant::now()));
    }
}
