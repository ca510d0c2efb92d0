//! Kinds of audit log entries: checkpoint.

agentsvc_components::audit_kinds! {
    /// A client asked for a restore of files; `checkpoint_restored` follows where it was done.
    CHECKPOINT_RESTORE_STARTED = "checkpoint_restore_started";
    /// Files of a workspace were restored from a checkpoint.
    CHECKPOINT_RESTORED = "checkpoint_restored";
}
