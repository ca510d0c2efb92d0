//! Requests to authorization servers and identity providers, and for what they say of themselves: bounded, without redirects, and nothing of a token or a secret in an
//! error.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::kernel::config::Secret;
use crate::kernel::egress::Web;
use crate::kernel::host::is_loopback;

/// Time for one request, the lookup of its host included.
const TIME_MAX: Duration = Duration::from_secs(15);
/// Bytes of a URL.
pub(crate) const URL_BYTES_MAX: usize = 2_048;
/// Bytes of the word that says what went wrong.
const WORD_BYTES_MAX: usize = 40;

/// What may be reached: public hosts, those of `[web.fetch] ssrf_allowed_hosts`, and those that the operator named; never the API of this daemon.
pub(crate) struct Reach {
    pub(crate) web: Web,
    /// Hosts and ports that the operator named.
    pub(crate) named: Vec<(String, u16)>,
    /// The port of the API.
    pub(crate) own_port: u16,
    /// Bytes of one answer.
    pub(crate) answer_bytes_max: usize,
}

/// An address that tokens may go to: encrypted, or on this machine.
///
/// # Errors
/// What is wrong, in words that continue a sentence.
pub(crate) fn secure(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|_| "is not a URL".to_owned())?;
    if text.len() > URL_BYTES_MAX || !url.username().is_empty() || url.password().is_some() {
        return Err("is too long or contains a user".to_owned());
    }
    match (url.scheme(), url.host_str()) {
        ("https", Some(_)) => Ok(url),
        ("http", Some(host)) if is_loopback(host) => Ok(url),
        _ => Err("is not an https URL".to_owned()),
    }
}

/// What a server said.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The body; `Null` when it is not JSON.
    pub(crate) body: Value,
}

impl Answer {
    /// Did it do what it was asked for?
    pub(crate) const fn is_success(&self) -> bool {
        matches!(self.status, 200..300)
    }

    /// The `error` of RFC 6749, where it is a plain word.
    pub(crate) fn error(&self) -> Option<&str> {
        self.body["error"].as_str().filter(|word| is_word(word))
    }

    /// What went wrong, in words that continue a sentence. Descriptions are left out: they may repeat what was sent.
    pub(crate) fn failure(&self) -> String {
        match self.error() {
            Some(word) => format!("returned the error {word} (status {})", self.status),
            None => format!("returned status {}", self.status),
        }
    }
}

/// Is it a word such as `invalid_grant`?
pub(crate) fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= WORD_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

impl Reach {
    /// Gets a document. `None` when there is none.
    ///
    /// # Errors
    /// A sentence: the server cannot be reached, may not be, or failed.
    pub(crate) async fn document(&self, url: &Url) -> Result<Option<Value>, String> {
        let answer = self.ask(Method::GET, url, |request| request).await?;
        match answer.status {
            200 if answer.body.is_object() => Ok(Some(answer.body)),
            300..400 => Err(format!("{} returned a redirect, which is not followed", host(url))),
            500.. => Err(format!("{} {}", host(url), answer.failure())),
            _ => Ok(None),
        }
    }

    /// Gets what a token is for.
    ///
    /// # Errors
    /// As [`document`](Self::document).
    pub(crate) async fn with_token(&self, url: &Url, token: HeaderValue) -> Result<Answer, String> {
        self.ask(Method::GET, url, |request| request.header(AUTHORIZATION, token)).await
    }

    /// Posts a form. `basic` are the client and its secret, where they go as `Authorization`.
    ///
    /// # Errors
    /// A sentence: the server cannot be reached, or may not be.
    pub(crate) async fn form(
        &self,
        url: &Url,
        fields: &[(&str, &str)],
        basic: Option<HeaderValue>,
    ) -> Result<Answer, String> {
        let body = form(fields);
        let fill = |request: RequestBuilder| {
            let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body.to_string());
            basic.into_iter().fold(request, |request, value| request.header(AUTHORIZATION, value))
        };
        self.ask(Method::POST, url, fill).await
    }

    /// Posts JSON.
    ///
    /// # Errors
    /// As [`form`](Self::form).
    pub(crate) async fn json(&self, url: &Url, body: &Value) -> Result<Answer, String> {
        let fill = |request: RequestBuilder| request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        self.ask(Method::POST, url, fill).await
    }

    async fn ask(
        &self,
        method: Method,
        url: &Url,
        fill: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Answer, String> {
        if self.is_own(url) {
            return Err(format!("{} with port {} is the API of this daemon and is refused", host(url), self.own_port));
        }
        let asking = async {
            let plain = |error: String| error.trim_end_matches('.').to_owned();
            let site =
                self.web.site(url.as_str(), self.is_named(url)).await.map_err(|error| plain(error.to_string()))?;
            let request = site.request(method, url.clone()).map_err(|error| plain(error.to_string()))?;
            let request = fill(request.header(ACCEPT, "application/json"));
            let response = site.send(request).await.map_err(|unsent| plain(unsent.error.to_string()))?;
            let status = response.status().as_u16();
            let body = read(response, self.answer_bytes_max).await.map_err(|why| format!("{} {why}", host(url)))?;
            Ok(Answer { status, body: serde_json::from_slice(&body).unwrap_or_default() })
        };
        let late = |_| Err(format!("{} did not respond within {} seconds", host(url), TIME_MAX.as_secs()));
        tokio::time::timeout(TIME_MAX, asking).await.unwrap_or_else(late)
    }

    /// Is it at a host and port that the operator named? All names of this machine are one.
    fn is_named(&self, url: &Url) -> bool {
        let Some((host, port)) = place(url) else { return false };
        let is_host = |named: &str| *named == host || (is_loopback(named) && is_loopback(&host));
        self.named.iter().any(|(named, its_port)| *its_port == port && is_host(named))
    }

    /// Is it at the API of this daemon, which may need no key of this machine? Plain HTTP goes to names of loopback only.
    fn is_own(&self, url: &Url) -> bool {
        place(url).is_some_and(|(host, port)| port == self.own_port && is_loopback(&host))
    }
}

/// The host of a URL, in lower case, and its port.
pub(crate) fn place(url: &Url) -> Option<(String, u16)> {
    Some((host(url), url.port_or_known_default()?))
}

/// The host of a URL, in lower case.
pub(crate) fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_ascii_lowercase()
}

async fn read(mut response: Response, most: usize) -> Result<Zeroizing<Vec<u8>>, String> {
    let mut body = Zeroizing::new(Vec::new());
    while let Some(piece) =
        response.chunk().await.map_err(|_| "closed the connection before its response was complete".to_owned())?
    {
        if body.len() + piece.len() > most {
            return Err(format!("returned more than {most} bytes"));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The fields as `application/x-www-form-urlencoded`.
pub(crate) fn form(fields: &[(&str, &str)]) -> Zeroizing<String> {
    // The URL's parser is the one encoder there is; its host means nothing.
    let Ok(mut url) = Url::parse("http://form") else { return Zeroizing::default() };
    url.query_pairs_mut().extend_pairs(fields);
    Zeroizing::new(url.query().unwrap_or_default().to_owned())
}

/// The header by which a client authenticates with its secret.
pub(crate) fn basic(id: &str, secret: &Secret) -> Option<HeaderValue> {
    // Both are encoded as in forms first (RFC 6749, 2.3.1).
    let encoded = |text: &str| Zeroizing::new(form(&[("", text)]).trim_start_matches('=').to_owned());
    let pair = Zeroizing::new(format!("{}:{}", *encoded(id), *encoded(secret.expose())));
    let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn failures_repeat_no_secret() {
        let failure = |status, body| Answer { status, body }.failure();
        let described = json!({ "error": "invalid_grant", "error_description": "the code s3cret is wrong" });
        assert_eq!(failure(400, described), "returned the error invalid_grant (status 400)");
        assert_eq!(failure(400, json!({ "error": "s3cret token" })), "returned status 400");
        assert_eq!(failure(502, Value::Null), "returned status 502");
    }

    #[tokio::test]
    async fn only_named_hosts_may_be_private() {
        let url = |text: &str| Url::parse(text).unwrap();
        let reach = |named: &[&str]| Reach {
            web: Web::default(),
            named: named.iter().filter_map(|it| place(&url(it))).collect(),
            own_port: 4545,
            answer_bytes_max: 1_024,
        };
        for place in ["http://127.0.0.1:1/", "http://169.254.169.254/", "http://10.0.0.1/", "http://localhost:1/"] {
            let why = reach(&[]).document(&url(place)).await.unwrap_err();
            assert!(why.contains("is refused"), "{place}: {why}");
        }
        let local = reach(&["http://127.0.0.1:1/mcp", "https://intern.example/mcp"]);
        for (it, is_named) in [
            ("http://localhost:1/", true),
            ("http://localhost:2/", false),
            ("http://localhost/", false),
            ("http://10.0.0.1:1/", false),
            ("https://intern.example:443/token", true),
            ("https://intern.example:8443/token", false),
            ("https://other.example/", false),
        ] {
            assert_eq!(local.is_named(&url(it)), is_named, "{it}");
        }
        assert!(local.document(&url("http://127.0.0.1:1/")).await.unwrap_err().contains("could not be fetched"));
        for other in ["http://127.0.0.1:2/", "http://10.0.0.1:1/"] {
            assert!(local.document(&url(other)).await.unwrap_err().contains("is refused"), "{other}");
        }
    }

    #[tokio::test]
    async fn the_api_of_the_daemon_is_reached_by_no_name_and_no_setting() {
        let allowed = crate::kernel::egress::AllowedHosts::parse(&["127.0.0.0/8", "localhost", "[::1]"]).unwrap();
        let web = Web::new(crate::kernel::egress::WebSettings { allowed, ..Default::default() });
        let named = vec![("127.0.0.1".to_owned(), 4545)];
        let reach = Reach { web, named, own_port: 4545, answer_bytes_max: 1_024 };
        for host in ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "127.1", "2130706433", "127.0.0.2"] {
            let url = Url::parse(&format!("http://{host}:4545/api/shutdown")).unwrap();
            let why = reach.json(&url, &json!({})).await.err().unwrap();
            assert!(why.contains("the API of this daemon"), "{host}: {why}");
        }
    }
}
