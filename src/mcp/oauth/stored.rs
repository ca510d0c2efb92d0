//! What the vault keeps of a sign-in: where it was, as which client, and the tokens.

use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::Url;
use reqwest::header::HeaderValue;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::kernel::config::Secret;
use crate::kernel::logging::known_secrets;
use crate::kernel::oauth::basic;

/// Milliseconds before its end at which a token is refreshed, at most: of a short one, when half of it is over.
const MARGIN_MS: u64 = 60_000;
/// Bytes of a token, a secret, or the name of a client.
const SECRET_BYTES_MAX: usize = 16 << 10;
/// Bytes of the scopes of a token.
const SCOPE_BYTES_MAX: usize = 4 << 10;

/// A sign-in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stored {
    /// The server that it is for; at another address it is not used.
    pub(super) server: String,
    /// What tokens are asked for.
    pub(super) resource: String,
    /// The authorization server, where it has a name.
    pub(super) issuer: Option<String>,
    #[serde(serialize_with = "spelled", deserialize_with = "address")]
    pub(super) token_endpoint: Url,
    #[serde(default, serialize_with = "spelled_some", deserialize_with = "address_some")]
    pub(super) revocation_endpoint: Option<Url>,
    pub(super) client: Client,
    /// `None` until the user has signed in.
    pub(super) tokens: Option<Tokens>,
}

/// The daemon as a client of an authorization server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    /// Its secret, where it was registered with one. That of a configured client is not stored.
    #[serde(default, serialize_with = "exposed_some", deserialize_with = "secret_some")]
    pub(super) secret: Option<Secret>,
    pub(super) method: Method,
    /// It was registered by the daemon, with this address for answers.
    pub(super) redirect_uri: Option<String>,
    /// Milliseconds since 1970 at which the registration ends.
    #[serde(default)]
    pub(super) expires_at: Option<u64>,
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Method {
    /// It has no secret.
    #[serde(rename = "none")]
    None,
    /// By the header `Authorization`.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// In the form.
    #[serde(rename = "client_secret_post")]
    Post,
}

impl Method {
    /// Its name in metadata.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }

    /// The first of `wanted` that a server supports. One that does not say takes all.
    pub(super) fn choose(wanted: &[Self], supported: Option<&[String]>) -> Option<Self> {
        let takes = |method: &&Self| supported.is_none_or(|names| names.iter().any(|name| name == method.name()));
        wanted.iter().find(takes).copied()
    }
}

impl Client {
    /// Reads the answer to a registration (RFC 7591, 3.2.1) that asked for `method`.
    ///
    /// # Errors
    /// What is wrong, in words that continue a sentence.
    pub(super) fn registered(body: &Value, method: Method, redirect_uri: &str) -> Result<Self, String> {
        let id = graphic(&body["client_id"]).ok_or("returned no client_id")?;
        let secret = graphic(&body["client_secret"]).map(Secret::new);
        let named = body["token_endpoint_auth_method"].as_str();
        let named = [Method::None, Method::Basic, Method::Post].into_iter().find(|it| named == Some(it.name()));
        let method = match (named.unwrap_or(method), &secret) {
            (Method::None, _) => Method::None,
            (method, Some(_)) => method,
            (_, None) => return Err("returned no client_secret".to_owned()),
        };
        let secret = secret.filter(|_| method != Method::None);
        let expires_at = body["client_secret_expires_at"].as_u64().filter(|secs| *secs > 0 && secret.is_some());
        let expires_at = expires_at.map(|secs| secs.saturating_mul(1_000));
        Ok(Self { id: id.to_owned(), secret, method, redirect_uri: Some(redirect_uri.to_owned()), expires_at })
    }

    /// The header by which it authenticates with `secret`, where it does so.
    pub(super) fn basic(&self, secret: Option<&Secret>) -> Option<HeaderValue> {
        let secret = secret.filter(|_| self.method == Method::Basic)?;
        basic(&self.id, secret)
    }
}

/// What a sign-in gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tokens {
    #[serde(serialize_with = "exposed", deserialize_with = "secret")]
    pub(super) access: Secret,
    #[serde(default, serialize_with = "exposed_some", deserialize_with = "secret_some")]
    pub(super) refresh: Option<Secret>,
    /// Milliseconds since 1970 at which they came.
    pub(super) came_at: u64,
    /// Milliseconds since 1970 at which the access token ends, where that is known.
    pub(super) expires_at: Option<u64>,
    /// What was granted, where that is known.
    pub(super) scope: Option<String>,
}

impl Tokens {
    /// Reads the answer of a token endpoint at `now`. What it leaves out is as `before` (RFC 6749, 5.1 and 6).
    ///
    /// # Errors
    /// What is wrong, in words that continue a sentence.
    pub(super) fn read(body: &Value, before: (Option<&Secret>, Option<&str>), now: u64) -> Result<Self, String> {
        let access = graphic(&body["access_token"]).map(Secret::new).ok_or("returned no access token")?;
        if body["token_type"].as_str().is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err("returned a token that is not of type Bearer".to_owned());
        }
        let expires_in = &body["expires_in"];
        let secs = expires_in.as_u64().or_else(|| expires_in.as_f64().map(|secs| secs.max(0.0) as u64));
        let secs = secs.or_else(|| expires_in.as_str()?.parse().ok());
        let scope = body["scope"].as_str().or(before.1);
        let scope =
            scope.filter(|text| !text.is_empty() && text.len() <= SCOPE_BYTES_MAX && !text.contains(char::is_control));
        Ok(Self {
            access,
            refresh: graphic(&body["refresh_token"]).map(Secret::new).or_else(|| before.0.cloned()),
            came_at: now,
            expires_at: secs.map(|secs| now.saturating_add(secs.saturating_mul(1_000))),
            scope: scope.map(str::to_owned),
        })
    }

    /// Has the access token ended?
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }

    /// Has it ended, or is it about to?
    pub(super) fn is_stale(&self, now: u64) -> bool {
        let margin = |end: u64| MARGIN_MS.min(end.saturating_sub(self.came_at) / 2);
        self.expires_at.is_some_and(|end| now.saturating_add(margin(end)) >= end)
    }
}

impl Stored {
    /// Reads the secret of the vault.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// The secret for the vault.
    pub(super) fn write(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Keeps its secrets out of the log.
    pub(super) fn hide(&self) {
        for secret in self.secrets() {
            known_secrets().add(secret.expose());
        }
    }

    /// Its secrets.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let tokens = self.tokens.iter().flat_map(|tokens| [Some(&tokens.access), tokens.refresh.as_ref()]);
        tokens.chain([self.client.secret.as_ref()]).flatten()
    }
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A text that a header can carry.
pub(super) fn graphic(value: &Value) -> Option<&str> {
    let is_fit =
        |text: &&str| (1..=SECRET_BYTES_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    value.as_str().filter(is_fit)
}

fn spelled<S: Serializer>(url: &Url, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(url.as_str())
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    Url::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

#[allow(clippy::ref_option, reason = "serde passes the field")]
fn spelled_some<S: Serializer>(url: &Option<Url>, serializer: S) -> Result<S::Ok, S::Error> {
    url.as_ref().map(Url::as_str).serialize(serializer)
}

fn address_some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| Url::parse(&text).map_err(D::Error::custom)).transpose()
}

fn exposed<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    Box::<str>::deserialize(deserializer).map(Secret::new)
}

#[allow(clippy::ref_option, reason = "serde passes the field")]
fn exposed_some<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(serializer)
}

fn secret_some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secret>, D::Error> {
    Option::<Box<str>>::deserialize(deserializer).map(|text| text.map(Secret::new))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_stored_comes_back_and_is_shown_nowhere() {
        let secret = |text: &str| Some(Secret::new(text));
        let url = Url::parse("https://as.example/token").unwrap();
        let client = Client {
            id: "c".to_owned(),
            secret: secret("canary1"),
            method: Method::Post,
            redirect_uri: None,
            expires_at: None,
        };
        let tokens = Tokens::read(
            &json!({ "access_token": "canary2", "refresh_token": "canary3", "expires_in": 60 }),
            (None, Some("a")),
            7,
        );
        let stored = Stored {
            server: "https://h".to_owned(),
            resource: "https://h".to_owned(),
            issuer: None,
            token_endpoint: url,
            revocation_endpoint: None,
            client,
            tokens: Some(tokens.unwrap()),
        };
        assert_eq!(Stored::read(&stored.write()).as_ref(), Some(&stored));
        assert!(!format!("{stored:?}").contains("canary"));
        assert_eq!(Stored::read(b"{}"), None);
        stored.hide();
        assert_eq!(known_secrets().mask("x canary1 canary2 canary3"), "x *** *** ***");
    }

    #[test]
    fn tokens_are_read_as_servers_write_them() {
        let read = |body: Value| Tokens::read(&body, (Some(&Secret::new("old")), Some("s")), 1_000);
        let whole = json!({ "access_token": "a", "token_type": "bearer", "expires_in": 100, "refresh_token": "r", "scope": "x y" });
        let tokens = read(whole).unwrap();
        assert_eq!((tokens.expires_at, tokens.scope.as_deref()), (Some(101_000), Some("x y")));
        assert_eq!(tokens.refresh, Some(Secret::new("r")));
        let short = read(json!({ "access_token": "a" })).unwrap();
        assert_eq!(
            (short.refresh, short.scope.as_deref(), short.expires_at),
            (Some(Secret::new("old")), Some("s"), None)
        );
        for (expires_in, end) in
            [(json!("60"), Some(61_000)), (json!(1.9), Some(2_000)), (json!(-1), Some(1_000)), (json!("x"), None)]
        {
            let tokens = read(json!({ "access_token": "a", "expires_in": expires_in })).unwrap();
            assert_eq!(tokens.expires_at, end, "{expires_in}");
        }
        for wrong in
            [json!({}), json!({ "access_token": "" }), json!({ "access_token": "a b" }), json!({ "access_token": 7 })]
        {
            assert!(read(wrong).is_err());
        }
        assert!(read(json!({ "access_token": "a", "token_type": "mac" })).unwrap_err().contains("Bearer"));
        assert!(read(json!({ "access_token": "a", "expires_in": u64::MAX })).unwrap().expires_at == Some(u64::MAX));
    }

    #[test]
    fn tokens_are_refreshed_before_they_end() {
        let tokens =
            |secs: u64| Tokens::read(&json!({ "access_token": "a", "expires_in": secs }), (None, None), 0).unwrap();
        let long = tokens(3_600);
        assert!(
            !long.is_stale(3_539_999)
                && long.is_stale(3_540_000)
                && !long.is_over(3_599_999)
                && long.is_over(3_600_000)
        );
        let short = tokens(10);
        assert!(!short.is_stale(4_999) && short.is_stale(5_000));
        assert!(tokens(0).is_stale(0));
        let endless = Tokens { expires_at: None, ..long };
        assert!(!endless.is_stale(u64::MAX) && !endless.is_over(u64::MAX));
    }

    #[test]
    fn clients_authenticate_as_servers_want() {
        let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let all = [Method::None, Method::Post, Method::Basic];
        assert_eq!(Method::choose(&all, None), Some(Method::None));
        assert_eq!(Method::choose(&all, Some(&names(&["client_secret_basic"]))), Some(Method::Basic));
        assert_eq!(Method::choose(&all, Some(&names(&["private_key_jwt"]))), None);
        let read = |body: Value| Client::registered(&body, Method::None, "http://h/cb");
        let public = read(json!({ "client_id": "c", "client_secret": "unused" })).unwrap();
        assert_eq!((public.method, public.basic(Some(&Secret::new("s"))), public.secret), (Method::None, None, None));
        let basic = json!({ "client_id": "c d".replace(' ', ":"), "client_secret": "s%", "token_endpoint_auth_method":
            "client_secret_basic", "client_secret_expires_at": 5 });
        let basic = read(basic).unwrap();
        assert_eq!(basic.expires_at, Some(5_000));
        let header = basic.basic(basic.secret.as_ref()).unwrap();
        assert_eq!(header.to_str().unwrap(), format!("Basic {}", STANDARD.encode("c%3Ad:s%25")));
        assert!(read(json!({ "client_id": "c", "token_endpoint_auth_method": "client_secret_post" })).is_err());
        assert!(read(json!({ "client_id": "a b" })).is_err() && read(Value::Null).is_err());
    }
}
