//! One post to the receiver of a webhook.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::webhook::sender::{TestFailure, WebhookSender};
use agentsvc_components::kernel::job::TryEnd;
use agentsvc_components::webhook::Webhook;
use agentsvc_systems::kernel::record::hex;
use agentsvc_systems::webhook::WebhookView;
use agentsvc_systems::webhook::limits::{DELIVERY_BACKOFF_MS_MAX, DELIVERY_TIMEOUT_MS};
use futures_util::future::BoxFuture;
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use ring::hmac;
use serde_json::json;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::kernel::egress::{Error, Post, Posted, Web};
use crate::kernel::vault::{self, Vault};

/// The name under which secrets are sealed.
const SEALED_AS: &str = "webhook";
const SIGNATURE: HeaderName = HeaderName::from_static("x-webhook-signature");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-webhook-timestamp");
const ID: HeaderName = HeaderName::from_static("x-webhook-id");

/// Why a post did not come to an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The request failed.
    #[error("{0}")]
    Web(#[from] Error),
    /// The secret cannot be opened, and will not be.
    #[error("the secret cannot be decrypted; set it again: {0}")]
    Secret(vault::Error),
    /// The vault cannot be read now.
    #[error("the secret cannot be read: {0}")]
    Vault(String),
}

/// May the same request succeed later? Not when the host must not be reached.
pub(super) const fn may_pass(error: &Error) -> bool {
    matches!(error, Error::Lookup { .. } | Error::Exchange { .. } | Error::Timeout(_) | Error::Client(_))
}

/// May a receiver that answers like this take the same request later?
pub(super) fn may_change(status: StatusCode) -> bool {
    matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS) || status.is_server_error()
}

/// What becomes of a delivery that was posted (facts of the wire, 3.2), with a sentence for people.
pub(crate) fn ended(posted: &Result<Posted, Failure>) -> TryEnd {
    let responded = |status: StatusCode| format!("the receiver responded with {status}");
    match posted {
        Ok(posted) if posted.status.is_success() => TryEnd::Done(String::new()),
        Ok(Posted { status, retry_after }) if may_change(*status) => {
            let after_ms = retry_after.map(|after| after.as_millis().min(DELIVERY_BACKOFF_MS_MAX as u128) as u32);
            TryEnd::Retry { after_ms, reason: responded(*status) }
        }
        Ok(posted) => TryEnd::Failed(responded(posted.status)),
        Err(Failure::Web(error)) if may_pass(error) => TryEnd::Retry { after_ms: None, reason: error.to_string() },
        Err(failure @ Failure::Vault(_)) => TryEnd::Retry { after_ms: None, reason: failure.to_string() },
        Err(failure) => TryEnd::Failed(failure.to_string()),
    }
}

/// What posts to receivers.
pub(crate) struct Sender {
    pub(crate) web: Web,
    pub(crate) vault: Vault,
}

impl Sender {
    /// Posts `body` under this id.
    ///
    /// # Errors
    /// [`Failure`].
    pub(super) async fn post(&self, webhook: &Webhook, id: Uuid, body: String) -> Result<Posted, Failure> {
        self.post_as(webhook, None, id, body).await
    }

    /// Posts `body` under this id, with a sealed `Authorization` header.
    ///
    /// # Errors
    /// [`Failure`].
    pub(crate) async fn post_as(
        &self,
        webhook: &Webhook,
        authorization: Option<&str>,
        id: Uuid,
        body: String,
    ) -> Result<Posted, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(TIMESTAMP, HeaderValue::from(agentsvc_api::http::timestamp::now().timestamp()));
        headers.extend(HeaderValue::from_str(&id.to_string()).map(|id| (ID, id)));
        if let Some(sealed) = authorization {
            let value = self.unsealed(sealed).await?;
            headers.extend(HeaderValue::from_bytes(&value).map(|mut value| {
                value.set_sensitive(true);
                (AUTHORIZATION, value)
            }));
        }
        if let Some(sealed) = &webhook.secret {
            let secret = self.unsealed(sealed).await?;
            let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), body.as_bytes());
            let signature = format!("sha256={}", hex(signature.as_ref()));
            headers.extend(HeaderValue::from_str(&signature).map(|signature| (SIGNATURE, signature)));
        }
        let timeout = Duration::from_millis(DELIVERY_TIMEOUT_MS.into());
        Ok(self.web.post(Post { url: &webhook.url, headers, body, timeout }).await?)
    }

    async fn unsealed(&self, sealed: &str) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let (vault, sealed) = (self.vault.clone(), sealed.to_owned());
        let secret = tokio::task::spawn_blocking(move || vault.unseal(SEALED_AS, &sealed)).await;
        secret.map_err(|error| Failure::Vault(error.to_string()))?.map_err(|error| match error {
            error @ (vault::Error::DoesNotOpen { .. } | vault::Error::Damaged { .. }) => Failure::Secret(error),
            error => Failure::Vault(error.to_string()),
        })
    }
}

impl WebhookSender for Sender {
    fn vet(self: Arc<Self>, url: String) -> BoxFuture<'static, Result<String, String>> {
        Box::pin(async move { self.web.vet(&url, false).await.map_err(|error| error.to_string()) })
    }

    fn seal(&self, secret: &str) -> Result<String, String> {
        self.vault.seal(SEALED_AS, secret.as_bytes()).map_err(|error| error.to_string())
    }

    fn test(self: Arc<Self>, view: WebhookView, request: Uuid) -> BoxFuture<'static, Result<u16, TestFailure>> {
        Box::pin(async move {
            let WebhookView { id, webhook } = view;
            let body = json!({
                "event": "test",
                "timestamp": agentsvc_api::http::timestamp::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
                "webhook_id": id,
                "message": format!("This is a test of the webhook {:?}.", webhook.name),
            });
            let posted = self.post(&webhook, request, body.to_string()).await;
            posted.map(|posted| posted.status.as_u16()).map_err(|failure| match &failure {
                Failure::Web(error) if may_pass(error) => TestFailure::Unreachable(failure.to_string()),
                Failure::Web(_) => TestFailure::Refused(failure.to_string()),
                Failure::Secret(_) | Failure::Vault(_) => TestFailure::Secret(failure.to_string()),
            })
        })
    }
}
