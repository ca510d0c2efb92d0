//! Kinds of audit log entries: prompt versions and experiments.

agentsvc_components::audit_kinds! {
    /// A version of a system prompt was saved.
    PROMPT_VERSION_SAVED = "prompt_version_saved";
    /// A version of a system prompt became that of its agent.
    PROMPT_VERSION_ACTIVATED = "prompt_version_activated";
    /// A version of a system prompt was deleted.
    PROMPT_VERSION_DELETED = "prompt_version_deleted";
    /// A prompt experiment was created.
    PROMPT_EXPERIMENT_CREATED = "prompt_experiment_created";
    /// A prompt experiment was started.
    PROMPT_EXPERIMENT_STARTED = "prompt_experiment_started";
    /// A prompt experiment was paused.
    PROMPT_EXPERIMENT_PAUSED = "prompt_experiment_paused";
    /// A prompt experiment was completed.
    PROMPT_EXPERIMENT_COMPLETED = "prompt_experiment_completed";
    /// A prompt experiment was deleted.
    PROMPT_EXPERIMENT_DELETED = "prompt_experiment_deleted";
}
