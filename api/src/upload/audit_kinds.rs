//! Kinds of audit log entries: upload.

agentsvc_components::audit_kinds! {
    /// A file of an agent's workspace was written.
    FILE_WRITTEN = "file_written";
    /// A file of an agent's workspace was deleted.
    FILE_DELETED = "file_deleted";
}
