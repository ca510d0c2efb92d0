//! What posts to the receivers of webhooks, and keeps their secrets.

use agentsvc_systems::webhook::WebhookView;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use uuid::Uuid;

/// Posts to the receivers of webhooks. The daemon provides it.
pub trait WebhookSender: Send + Sync {
    /// May events be posted to `url`? Gives it in its one spelling.
    ///
    /// # Errors
    /// Why not, in a sentence.
    fn vet(self: Arc<Self>, url: String) -> BoxFuture<'static, Result<String, String>>;

    /// Seals a secret. May wait for the disk.
    ///
    /// # Errors
    /// Why the vault cannot be used.
    fn seal(&self, secret: &str) -> Result<String, String>;

    /// Posts a test to a webhook under this id; gives the status of the answer.
    ///
    /// # Errors
    /// Why there was none.
    fn test(self: Arc<Self>, webhook: WebhookView, id: Uuid) -> BoxFuture<'static, Result<u16, TestFailure>>;
}

/// Why a test came to no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestFailure {
    /// The receiver did not respond.
    Unreachable(String),
    /// The URL must not be reached any more.
    Refused(String),
    /// The secret cannot be opened.
    Secret(String),
}
