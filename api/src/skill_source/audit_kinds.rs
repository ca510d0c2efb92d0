//! Kinds of audit log entries: sources of skills.

agentsvc_components::audit_kinds! {
    /// A skill was fetched, passed its checks and is about to be installed.
    SKILL_INSTALLED = "skill_installed";
    /// An installed skill is about to be removed.
    SKILL_UNINSTALLED = "skill_uninstalled";
}
