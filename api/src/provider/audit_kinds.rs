//! Kinds of audit log entries: provider.

agentsvc_components::audit_kinds! {
    /// A key of a provider was put in the vault.
    PROVIDER_KEY_SET = "provider_key_set";
    /// The key or the sign-in of a provider was taken out of the vault.
    PROVIDER_KEY_REMOVED = "provider_key_removed";
    /// Where a provider is asked was set, or set back.
    PROVIDER_URL_SET = "provider_url_set";
    /// A person signed in at a provider; the token is in the vault.
    PROVIDER_SIGNED_IN = "provider_signed_in";
}
