//! Error codes of workflows and their runs.

agentsvc_components::error_codes! {
    /// The limit for workflows, or for the bytes of their texts, is reached.
    WORKFLOWS_FULL = "workflows_full", [429], "Delete workflows.";
    /// Too many runs are in progress.
    WORKFLOW_RUNS_FULL = "workflow_runs_full", [429], "Retry after the time in `Retry-After`, or cancel runs.";
    /// Several workflows have this name.
    WORKFLOW_AMBIGUOUS = "workflow_ambiguous", [], "Use the workflow's id.";
    /// The workflow would start itself, directly or through others.
    WORKFLOW_CYCLE = "workflow_cycle", [], "Start another workflow.";
    /// Too many workflows have started each other.
    WORKFLOW_TOO_DEEP = "workflow_too_deep", [], "Put the steps into one workflow.";
    /// The run has ended and cannot be cancelled.
    RUN_ENDED = "run_ended", [409], "Nothing; read the run's state.";
    /// The run failed. `run_id` names it.
    RUN_FAILED = "run_failed", [500], "Read `error` and the steps of the run.";
    /// The run was cancelled. `run_id` names it.
    RUN_CANCELLED = "run_cancelled", [409], "Start the workflow again.";
}
