//! What posts to the receivers of webhooks, and keeps their secrets.

use agentsvc_systems::webhook::WebhookView;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use uuid::Uuid;

/// Posts to the receivers of webhooks. The daemon provides it.
pub trait WebhookSender: Send + Sync {
    /// May events be posted to `url`? Says why not, in a sentence that follows `url`.
    fn vet(self: Arc<Self>, url: String) -> BoxFuture<'static, Result<(), String>>;

    /// Seals a secret. May wait for the disk.
    ///
    /// # Errors
    /// Why the vault cannot be used.
    fn seal(&self, secret: &str) -> Result<String, String>;

    /// Posts a test to a webhook under this id; gives the status of the answer.
    ///
    /// # Errors
    /// Why there was none.
    fn test(self: Arc<Self>, webhook: WebhookView, id: Uuid) -> BoxFuture<'static, Result<u16, String>>;
}
