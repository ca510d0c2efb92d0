//! Kinds of audit log entries: agents.

agentsvc_components::audit_kinds! {
    /// A manifest came with a wrong signature, or without the one it needs.
    MANIFEST_REFUSED = "manifest_refused";
}
