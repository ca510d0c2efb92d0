//! The requests of a sign-in, and what is read of their answers. Nothing of a token or a code goes into an error or the log.

use agentsvc_api::provider::accounts::ProviderError;
use agentsvc_api::provider::error_codes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{RequestBuilder, Url};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::kernel::host::host_of;
use crate::kernel::oauth::form;
use crate::model::error::provider_words;
use crate::model::http::Clients;
use crate::model::provider::overrides::{Grant, Session, now_secs};
use crate::model::provider::{Secret, extra_headers};

/// Bytes of one answer. A token has a few kilobytes at most.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Seconds that a token holds which was exchanged and does not say.
const SESSION_SECS_DEFAULT: u64 = 600;

/// What a server said.
pub(super) struct Answer {
    /// The status.
    pub(super) status: u16,
    /// The body; `Null` when it is not JSON.
    pub(super) body: Value,
}

impl Answer {
    /// The `error` of RFC 6749, where there is one.
    pub(super) fn error(&self) -> Option<&str> {
        self.body["error"].as_str().filter(|word| !word.is_empty())
    }

    /// A secret of the answer.
    pub(super) fn secret(&self, key: &str) -> Option<Secret> {
        let text = self.body[key].as_str().filter(|text| !text.is_empty())?;
        // What no header can carry is no token.
        text.bytes().all(|byte| byte.is_ascii_graphic()).then(|| Secret::new(text))
    }

    /// What went wrong, in one sentence.
    pub(super) fn failure(&self, what: &str) -> ProviderError {
        let said =
            self.body["error_description"].as_str().or_else(|| self.error()).or_else(|| self.body["message"].as_str());
        let said = said.map(|words| provider_words(words, None)).filter(|words| !words.is_empty());
        let said = said.map_or_else(|| ".".to_owned(), |words| format!(": {words}"));
        let message = format!("{what} answered {}{said}", self.status);
        ProviderError::Failed { code: error_codes::OAUTH_FAILED, message }
    }

    /// What was granted.
    pub(super) fn grant(&self) -> Option<Grant> {
        let expires_in = self.body["expires_in"].as_u64().filter(|secs| *secs > 0);
        Some(Grant {
            access_token: self.secret("access_token")?,
            refresh_token: self.secret("refresh_token"),
            expires_at: expires_in.map(|secs| now_secs().saturating_add(secs)),
        })
    }

    /// What a grant was exchanged for: `token` and `expires_at`, in seconds since 1970.
    pub(super) fn session(&self) -> Option<Session> {
        let expires_at = self.body["expires_at"].as_u64();
        let expires_at = expires_at.unwrap_or_else(|| now_secs().saturating_add(SESSION_SECS_DEFAULT));
        Some(Session { token: self.secret("token")?, expires_at })
    }
}

/// Posts a form.
///
/// # Errors
/// The server cannot be reached, or does not answer in time.
pub(super) async fn post(clients: &Clients, url: &str, fields: &[(&str, &str)]) -> Result<Answer, ProviderError> {
    let request = |client: &reqwest::Client, url: Url| {
        client.post(url).header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form(fields).to_string())
    };
    send(clients, url, request).await
}

/// Exchanges a token, which goes as `Authorization`, for what calls go with.
pub(super) async fn exchange(
    clients: &Clients,
    provider: &str,
    url: &str,
    token: &Secret,
) -> Result<Answer, ProviderError> {
    let value = Zeroizing::new(format!("token {}", token.expose()));
    let mut value = HeaderValue::from_str(&value).map_err(|_| ProviderError::Failed {
        code: error_codes::OAUTH_FAILED,
        message: "the token contains characters that \
            cannot be sent"
            .to_owned(),
    })?;
    value.set_sensitive(true);
    let request = |client: &reqwest::Client, url: Url| {
        let request = client.get(url).header(AUTHORIZATION, value.clone());
        extra_headers(provider).iter().fold(request, |request, (name, value)| request.header(*name, *value))
    };
    send(clients, url, request).await
}

async fn send(
    clients: &Clients,
    url: &str,
    request: impl FnOnce(&reqwest::Client, Url) -> RequestBuilder,
) -> Result<Answer, ProviderError> {
    let host = host_of(url).unwrap_or_default();
    let failed = |message: String| ProviderError::Failed { code: error_codes::OAUTH_FAILED, message };
    let url = Url::parse(url).map_err(|_| failed("the sign-in address is not a URL".to_owned()))?;
    let client = clients.get(&url).map_err(|error| failed(error.message))?;
    let mut response = request(client, url).header(ACCEPT, "application/json").send().await.map_err(|error| {
        if error.is_timeout() {
            ProviderError::Late(format!("{host} did not respond in time"))
        } else {
            failed(format!("{host} is unreachable"))
        }
    })?;
    let status = response.status().as_u16();
    let mut body = Zeroizing::new(Vec::with_capacity(ANSWER_BYTES_MAX));
    while let Ok(Some(piece)) = response.chunk().await {
        if body.len() + piece.len() > ANSWER_BYTES_MAX {
            return Err(failed(format!("the response of {host} is too long")));
        }
        body.extend_from_slice(&piece);
    }
    Ok(Answer { status, body: serde_json::from_slice(&body).unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(status: u16, body: Value) -> Answer {
        Answer { status, body }
    }

    #[test]
    fn forms_are_encoded() {
        assert_eq!(form(&[("a b", "c&d=é"), ("x", "")]).as_str(), "a+b=c%26d%3D%C3%A9&x=");
    }

    #[test]
    fn tokens_are_read_and_never_shown() {
        let granted = answer(200, json!({"access_token": "gho_secret", "expires_in": 60, "refresh_token": "r"}));
        let grant = granted.grant().unwrap();
        assert!(grant.expires_at.unwrap() >= now_secs() + 50 && grant.refresh_token.is_some());
        assert!(!format!("{grant:?}").contains("secret"));
        assert_eq!(answer(200, json!({"access_token": "a\nb"})).grant(), None);
        assert_eq!(answer(200, json!({"access_token": "a", "expires_in": 0})).grant().unwrap().expires_at, None);
        assert!(answer(200, json!({})).session().is_none());
        let refused = answer(400, json!({"error": "bad", "error_description": "no\nsk-1234567890"}));
        assert_eq!(refused.failure("h").to_string(), "h answered 400: no ***");
        assert_eq!(answer(502, Value::Null).failure("h").to_string(), "h answered 502.");
    }
}
