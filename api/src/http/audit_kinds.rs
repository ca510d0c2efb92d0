//! Kinds of audit log entries that belong to no domain.

agentsvc_components::audit_kinds! {
    /// Another world was to take the place of the present one, and the present one is back.
    WORLD_EXCHANGE_FAILED = "world_exchange_failed";
    /// The store found no room on the disk and was opened anew.
    STORE_REOPENED = "store_reopened";
}
