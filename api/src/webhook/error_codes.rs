//! Error codes of webhooks.

agentsvc_components::error_codes! {
    /// The receiver of a webhook did not answer a test.
    WEBHOOK_UNREACHABLE = "webhook_unreachable", [502], "Check the URL and the receiver; `error` says what went wrong.";
}
