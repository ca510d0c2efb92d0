//! Error codes of providers and sign-ins.

agentsvc_components::error_codes! {
    /// The provider does not support this request.
    WRONG_PROVIDER = "wrong_provider", [400], "Read the message; choose another provider.";
    /// The sign-in at the provider failed.
    OAUTH_FAILED = "oauth_failed", [502], "Poll again, or start a new sign-in.";
}
