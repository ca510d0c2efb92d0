//! Kinds of audit log entries: memory entries.

agentsvc_components::audit_kinds! {
    /// Entries of the memory that an agent keeps were added, changed or imported.
    MEMORY_ENTRIES_WRITTEN = "memory_entries_written";
    /// Entries of the memory that an agent keeps were deleted.
    MEMORY_ENTRIES_DELETED = "memory_entries_deleted";
    /// No memory entries were made of a turn: extracting them failed too often, or its answer could not be used.
    MEMORY_TURN_NOT_MEMORIZED = "memory_turn_not_memorized";
    /// Duplicates among the entries of the memory that an agent keeps were replaced by the newest.
    MEMORY_ENTRIES_CONSOLIDATED = "memory_entries_consolidated";
}
