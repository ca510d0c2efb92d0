//! Kinds of audit log entries: audit.

agentsvc_components::audit_kinds! {
    /// The oldest entries went because they were older than `[audit] retention_days`.
    AUDIT_TRIMMED = "audit_trimmed";
    /// An operator accepted the log as it is, although it does not match what was signed.
    AUDIT_ACCEPTED = "audit_accepted";
    /// A tool call goes out.
    TOOL_CALLED = "tool_called";
}
