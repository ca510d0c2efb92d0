//! Kinds of audit log entries: backup.

agentsvc_components::audit_kinds! {
    /// A backup was made.
    BACKUP_CREATED = "backup_created";
    /// A backup that was due could not be made.
    BACKUP_FAILED = "backup_failed";
    /// A backup was deleted, or went by age or number.
    BACKUP_DELETED = "backup_deleted";
    /// A backup was sent to a client.
    BACKUP_DOWNLOADED = "backup_downloaded";
    /// A backup was restored.
    BACKUP_RESTORED = "backup_restored";
}
