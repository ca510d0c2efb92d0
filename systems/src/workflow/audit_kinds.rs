//! Kinds of audit log entries: workflow.

agentsvc_components::audit_kinds! {
    /// A workflow was made.
    WORKFLOW_CREATED = "workflow_created";
    /// A workflow changed.
    WORKFLOW_UPDATED = "workflow_updated";
    /// A workflow was deleted.
    WORKFLOW_DELETED = "workflow_deleted";
    /// A run of a workflow was begun.
    WORKFLOW_RUN_STARTED = "workflow_run_started";
    /// A run of a workflow was cancelled.
    WORKFLOW_RUN_CANCELLED = "workflow_run_cancelled";
}
