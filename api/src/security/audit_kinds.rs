//! Kinds of audit log entries: security.

agentsvc_components::audit_kinds! {
    /// Requests came without the key or with a wrong one.
    AUTH_FAILED = "auth_failed";
}
