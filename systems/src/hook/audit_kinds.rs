//! Kinds of audit log entries: hooks.

agentsvc_components::audit_kinds! {
    /// A hook was called, or a file came into the file inbox.
    HOOK_CALLED = "hook_called";
}
