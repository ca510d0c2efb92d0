//! Kinds of audit log entries: knowledge.

agentsvc_components::audit_kinds! {
    /// Entities or relations of an agent's knowledge were written.
    KNOWLEDGE_WRITTEN = "knowledge_written";
    /// Entities or relations of an agent's knowledge were deleted.
    KNOWLEDGE_DELETED = "knowledge_deleted";
}
