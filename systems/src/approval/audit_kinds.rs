//! Kinds of audit log entries: approval.

agentsvc_components::audit_kinds! {
    /// A client, or a turn whose tool needs one, asked for an approval.
    APPROVAL_REQUESTED = "approval_requested";
    /// A person decided an approval, or it expired.
    APPROVAL_DECIDED = "approval_decided";
}
