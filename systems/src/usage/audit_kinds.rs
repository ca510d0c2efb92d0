//! Kinds of audit log entries: usage.

agentsvc_components::audit_kinds! {
    /// A provider reported more usage than the call can have had; the most that it can cost was booked.
    USAGE_CLIPPED = "usage_clipped";
}
