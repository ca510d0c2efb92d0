//! One post to the receiver of a webhook.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::webhook::sender::WebhookSender;
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
use crate::kernel::vault::Vault;

/// As what secrets are sealed.
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
    /// The secret cannot be opened.
    #[error("the secret cannot be decrypted; set it again: {0}")]
    Secret(String),
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
            let secret = secret.map_err(|error| Failure::Secret(error.to_string()))?;
            let secret = secret.map_err(|error| Failure::Secret(error.to_string()))?;
            let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), body.as_bytes());
            let signature = format!("sha256={}", hex(signature.as_ref()));
            headers.extend(HeaderValue::from_str(&signature).map(|signature| (SIGNATURE, signature)));
        }
        let timeout = Duration::from_millis(DELIVERY_TIMEOUT_MS.into());
        Ok(self.web.post(Post { url: &webhook.url, headers, body, timeout }).await?)
    }
}

impl WebhookSender for Sender {
    fn vet(self: Arc<Self>, url: String) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async move { self.web.vet(&url, false).await.map_err(|error| error.to_string()) })
    }

    fn seal(&self, secret: &str) -> Result<String, String> {
        self.vault.seal(SEALED_AS, secret.as_bytes()).map_err(|error| error.to_string())
    }

    fn test(self: Arc<Self>, view: WebhookView, request: Uuid) -> BoxFuture<'static, Result<u16, String>> {
        Box::pin(async move {
            let WebhookView { id, webhook } = view;
            let body = json!({
                "event": "test",
                "timestamp": chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
                "webhook_id": id,
                "message": format!("This is a test of the webhook {:?}.", webhook.name),
            });
            let posted = self.post(&webhook, request, body.to_string()).await;
            posted.map(|posted| posted.status.as_u16()).map_err(|failure| failure.to_string())
        })
    }
}
