//! Kinds of audit log entries: memory.

agentsvc_components::audit_kinds! {
    /// Entries of an agent's memory were written or imported.
    MEMORY_WRITTEN = "memory_written";
    /// Entries of an agent's memory were deleted.
    MEMORY_DELETED = "memory_deleted";
}
