//! Error codes of consolidation runs.

agentsvc_components::error_codes! {
    /// `[auto_dream] enabled` is false, or the agent is not switched on.
    AUTO_DREAM_DISABLED = "auto_dream_disabled", [409], "Set `[auto_dream] enabled` and switch the agent on with `PUT /api/auto-dream/agents/{id}/enabled`.";
    /// The agent consolidates its memory already.
    DREAM_RUNNING = "dream_running", [409], "Wait for the run to end, or abort it.";
    /// The agent does not consolidate its memory now.
    DREAM_NOT_RUNNING = "dream_not_running", [409], "Nothing; there is no run to abort.";
    /// As many runs as `[auto_dream] max_concurrent` allows are under way.
    DREAMS_FULL = "dreams_full", [429], "Wait for a run to end, or raise `[auto_dream] max_concurrent`.";
}
