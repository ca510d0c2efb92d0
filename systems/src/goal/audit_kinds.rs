//! Kinds of audit log entries: goal.

agentsvc_components::audit_kinds! {
    /// A goal was set.
    GOAL_CREATED = "goal_created";
    /// A goal changed.
    GOAL_UPDATED = "goal_updated";
    /// A goal was deleted, with those below it.
    GOAL_DELETED = "goal_deleted";
}
