//! Kinds of audit log entries: checkpoint.

agentsvc_components::audit_kinds! {
    /// Files of a workspace were restored from a checkpoint.
    CHECKPOINT_RESTORED = "checkpoint_restored";
}
