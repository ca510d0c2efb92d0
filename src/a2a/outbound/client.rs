//! One request to an external agent and its bounded answer. A header with a key goes to the origin that it is for, and to no
//! other.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use agentsvc_api::http::json::memory_bytes;
use agentsvc_components::a2a::outbound::A2aSecret;
use agentsvc_systems::a2a::limits::{A2A_EXTERNAL_ANSWER_BYTES_MAX, A2A_EXTERNAL_ANSWER_MEMORY_BYTES_MAX};
use agentsvc_systems::kernel::record::hex;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode, Url};
use zeroize::Zeroizing;

use crate::a2a::config::A2a;
use crate::kernel::egress::{Error, Web, retry_after};
use crate::kernel::settings::Settings;
use crate::kernel::vault::{self, Vault};

/// How the names begin under which headers are sealed.
const SEALED_AS: &str = "a2a_agent";

/// Why there is no answer; parts of sentences.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The request may not be sent, now or later.
    Refused(String),
    /// Nothing was sent; it may be later.
    Unsent(String),
    /// It was sent, and has no answer that can be used.
    Unanswered(String),
}

impl Trouble {
    /// Why.
    pub(super) fn why(self) -> String {
        match self {
            Self::Refused(why) | Self::Unsent(why) | Self::Unanswered(why) => why,
        }
    }
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// When it may be asked again, where it says so.
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
}

/// A request.
pub(super) struct Request<'a> {
    pub(super) method: Method,
    pub(super) url: &'a str,
    /// The URL that the operator named. Another host than its own must be public, whatever the operator opened for others.
    pub(super) of: &'a str,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<String>,
}

/// Asks external agents. Copies share what bounds them.
#[derive(Clone)]
pub(in crate::a2a) struct Client {
    web: Web,
    /// Without the hosts that the operator opened.
    public: Web,
    /// `None` sends no keys.
    vault: Option<Vault>,
    settings: Settings,
}

impl Client {
    /// A client with these settings.
    pub(in crate::a2a) fn new(web: Web, vault: Vault, settings: Settings) -> Self {
        Self { web, public: Web::default(), vault: Some(vault), settings }
    }

    /// A client that sends no keys.
    pub(super) fn keyless(web: Web, settings: Settings) -> Self {
        Self { web, public: Web::default(), vault: None, settings }
    }

    /// What the configuration in force says.
    pub(super) fn config(&self) -> Arc<A2a> {
        self.settings.get::<A2a>()
    }

    /// May requests of the agent at `of` be sent to `url`?
    pub(super) async fn vet(&self, url: &str, of: &str) -> Result<(), String> {
        let web = if same_host(url, of) { &self.web } else { &self.public };
        web.vet(url, false).await.map(drop).map_err(|error| plain(&error))
    }

    /// Sends a request once, within the time of the configuration.
    pub(super) async fn ask(&self, request: Request<'_>, secret: Option<&A2aSecret>) -> Result<Answer, Trouble> {
        let secs = self.config().external_timeout_secs;
        let mut is_sent = false;
        let asking = self.exchange(request, secret, &mut is_sent);
        match tokio::time::timeout(Duration::from_secs(secs), asking).await {
            Ok(answer) => answer,
            Err(_) if is_sent => Err(Trouble::Unanswered(format!("no answer came within {secs} seconds"))),
            Err(_) => Err(Trouble::Unsent(format!("it could not be reached within {secs} seconds"))),
        }
    }

    async fn exchange(
        &self,
        request: Request<'_>,
        secret: Option<&A2aSecret>,
        is_sent: &mut bool,
    ) -> Result<Answer, Trouble> {
        let Request { method, url, of, headers, body } = request;
        let web = if same_host(url, of) { &self.web } else { &self.public };
        let site = web.site(url, false).await.map_err(unsent)?;
        let asked = site.request(method, site.url().clone()).map_err(unsent)?;
        let mut asked = asked.headers(headers).header(ACCEPT, "application/json");
        if let Some((name, value)) = self.header(&origin(site.url()), secret).await? {
            asked = asked.header(name, value);
        }
        if let Some(body) = body {
            asked = asked.header(CONTENT_TYPE, "application/json").body(body);
        }
        *is_sent = true;
        let response = site.send(asked).await.map_err(|unsent| {
            let why = plain(&unsent.error);
            if unsent.is_unreachable { Trouble::Unsent(why) } else { Trouble::Unanswered(why) }
        })?;
        read(response).await
    }

    /// The header that requests to an origin carry: the one that was given with the agent, else a key of the configuration.
    async fn header(
        &self,
        origin: &str,
        secret: Option<&A2aSecret>,
    ) -> Result<Option<(HeaderName, HeaderValue)>, Trouble> {
        let Some(vault) = self.vault.clone() else { return Ok(None) };
        if let Some(secret) = secret.filter(|secret| *secret.origin == *origin) {
            let (sealed, name) = (secret.sealed.clone(), sealed_as(origin));
            let opened = tokio::task::spawn_blocking(move || vault.unseal(&name, &sealed)).await;
            let opened = opened.map_err(|error| Trouble::Unsent(error.to_string()))?.map_err(|error| match error {
                vault::Error::DoesNotOpen { .. } | vault::Error::Damaged { .. } => {
                    Trouble::Refused("its header cannot be decrypted; discover it again with `headers`".to_owned())
                }
                error => Trouble::Unsent(error.to_string()),
            })?;
            return Ok(Some(sendable(&secret.header, &opened).map_err(Trouble::Refused)?));
        }
        let config = self.config();
        let Some(key) = config.external_keys.iter().find(|key| *key.origin == *origin) else { return Ok(None) };
        let missing = || Trouble::Refused(format!("the environment variable {} for its key is not set", key.variable));
        let value = self.web.variable(&key.variable).filter(|value| !value.is_empty()).map(Zeroizing::new);
        let value = value.ok_or_else(missing)?;
        let value = match &*key.header {
            name if name.eq_ignore_ascii_case(AUTHORIZATION.as_str()) => Zeroizing::new(format!("Bearer {}", *value)),
            _ => value,
        };
        Ok(Some(sendable(&key.header, value.as_bytes()).map_err(Trouble::Refused)?))
    }

    /// Seals a header for an origin. May wait for the disk.
    pub(super) fn seal(&self, origin: &str, value: &str) -> Result<String, String> {
        let vault = self.vault.as_ref().ok_or("there is no vault")?;
        vault.seal(&sealed_as(origin), value.as_bytes()).map_err(|error| error.to_string())
    }
}

/// The name under which the header of an origin is sealed: one that the vault takes, and another for each origin.
fn sealed_as(origin: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, origin.as_bytes());
    format!("{SEALED_AS}_{}", hex(&digest.as_ref()[..16]))
}

/// A header as it can be sent.
pub(super) fn sendable(name: &str, value: &[u8]) -> Result<(HeaderName, HeaderValue), String> {
    let wrong = || "the header cannot be sent: its name or its value is not that of an HTTP header".to_owned();
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
    if ["host", "content-length", "content-type", "transfer-encoding", "connection"].contains(&name.as_str()) {
        return Err(format!("the header {name} is set by the daemon"));
    }
    let mut value = HeaderValue::from_bytes(value).map_err(|_| wrong())?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Scheme, host and port.
pub(super) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Are they of one host and port?
pub(super) fn same_host(one: &str, other: &str) -> bool {
    let place = |text: &str| {
        let url = Url::parse(text).ok()?;
        Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
    };
    place(one).is_some_and(|one| Some(one) == place(other))
}

fn unsent(error: Error) -> Trouble {
    let why = plain(&error);
    match error {
        Error::Lookup { .. } | Error::Exchange { .. } | Error::Timeout(_) | Error::Client(_) => Trouble::Unsent(why),
        _ => Trouble::Refused(why),
    }
}

/// A sentence as the end of another one.
fn plain(error: &Error) -> String {
    error.to_string().trim_end_matches('.').to_owned()
}

async fn read(mut response: Response) -> Result<Answer, Trouble> {
    let (status, headers) = (response.status(), response.headers());
    let after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = after.and_then(|value| retry_after(value, SystemTime::now()));
    let mut body = Vec::new();
    // The error may hold the URL, and with it a key.
    while let Some(piece) =
        response.chunk().await.map_err(|_| Trouble::Unanswered("its answer broke off".to_owned()))?
    {
        if body.len() + piece.len() > A2A_EXTERNAL_ANSWER_BYTES_MAX {
            let why = format!("its answer is longer than {A2A_EXTERNAL_ANSWER_BYTES_MAX} bytes");
            return Err(Trouble::Unanswered(why));
        }
        body.extend_from_slice(&piece);
    }
    // A few bytes of JSON can become six hundred in memory.
    if memory_bytes(&body) > A2A_EXTERNAL_ANSWER_MEMORY_BYTES_MAX {
        let why = format!("its answer takes more than {A2A_EXTERNAL_ANSWER_MEMORY_BYTES_MAX} bytes of memory");
        return Err(Trouble::Unanswered(why));
    }
    Ok(Answer { status, retry_after, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_origins_are_told_apart() {
        assert!(same_host("https://a.example/x", "https://a.example:443/y") && same_host("http://h:1", "https://h:1"));
        for other in ["https://b.example/", "https://a.example:444/", "http://a.example/", "nothing"] {
            assert!(!same_host("https://a.example/x", other), "{other}");
        }
        let of = |url: &str| origin(&Url::parse(url).unwrap());
        assert_eq!((of("https://h:443/x?y"), of("http://h:81")), ("https://h".to_owned(), "http://h:81".to_owned()));
    }

    #[test]
    fn headers_of_the_protocol_are_not_given() {
        assert!(sendable("X-Api-Key", b"k").is_ok() && sendable("authorization", b"Bearer k").is_ok());
        for (name, value) in [("Host", "h"), ("content-length", "1"), ("a b", "x"), ("x", "a\nb")] {
            assert!(sendable(name, value.as_bytes()).is_err(), "{name}");
        }
        assert!(format!("{:?}", sendable("x", b"secret").unwrap()).contains("Sensitive"));
    }
}
