//! Kinds of audit log entries: definitions of hands.

agentsvc_components::audit_kinds! {
    /// A hand was installed.
    HAND_INSTALLED = "hand_installed";
    /// A hand was uninstalled.
    HAND_UNINSTALLED = "hand_uninstalled";
    /// Requirements of a hand are being installed.
    HAND_DEPS_INSTALLED = "hand_deps_installed";
}
