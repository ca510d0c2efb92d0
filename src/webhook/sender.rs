//! One post to the receiver of a webhook.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::webhook::sender::{TestFailure, WebhookSender};
use agentsvc_components::webhook::Webhook;
use agentsvc_systems::kernel::record::hex;
use agentsvc_systems::webhook::WebhookView;
use agentsvc_systems::webhook::limits::DELIVERY_TIMEOUT_MS;
use futures_util::future::BoxFuture;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use ring::hmac;
use serde_json::json;
use uuid::Uuid;

use crate::kernel::egress::{Error, Post, Posted, Web};
use crate::kernel::vault::{self, Vault};

/// The name under which secrets are sealed.
const SEALED_AS: &str = "webhook";
const SIGNATURE: HeaderName = HeaderName::from_static("x-webhook-signature");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-webhook-timestamp");
const ID: HeaderName = HeaderName::from_static("x-webhook-id");

/// Why a post did not come to an answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
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

/// What posts to receivers.
pub(super) struct Sender {
    pub(super) web: Web,
    pub(super) vault: Vault,
}

impl Sender {
    /// Posts `body` under this id.
    ///
    /// # Errors
    /// [`Failure`].
    pub(super) async fn post(&self, webhook: &Webhook, id: Uuid, body: String) -> Result<Posted, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(TIMESTAMP, HeaderValue::from(chrono::Utc::now().timestamp()));
        headers.extend(HeaderValue::from_str(&id.to_string()).map(|id| (ID, id)));
        if let Some(sealed) = webhook.secret.clone() {
            let vault = self.vault.clone();
            let secret = tokio::task::spawn_blocking(move || vault.unseal(SEALED_AS, &sealed)).await;
            let secret = secret.map_err(|error| Failure::Vault(error.to_string()))?.map_err(|error| match error {
                error @ (vault::Error::DoesNotOpen { .. } | vault::Error::Damaged { .. }) => Failure::Secret(error),
                error => Failure::Vault(error.to_string()),
            })?;
            let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), body.as_bytes());
            let signature = format!("sha256={}", hex(signature.as_ref()));
            headers.extend(HeaderValue::from_str(&signature).map(|signature| (SIGNATURE, signature)));
        }
        let timeout = Duration::from_millis(DELIVERY_TIMEOUT_MS.into());
        Ok(self.web.post(Post { url: &webhook.url, headers, body, timeout }).await?)
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
                "timestamp": chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
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
