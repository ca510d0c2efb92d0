//! Kinds of audit log entries: audit.

agentsvc_components::audit_kinds! {
    /// The oldest entries went because they were older than `[audit] retention_days`.
    AUDIT_TRIMMED = "audit_trimmed";
    /// A tool call goes out.
    TOOL_CALLED = "tool_called";
}
