//! Error codes of prompt versions and experiments.

agentsvc_components::error_codes! {
    /// Prompt versions and experiments are switched off.
    PROMPT_INTELLIGENCE_DISABLED = "prompt_intelligence_disabled", [404], "Set `[prompt_intelligence] enabled = true` in config.toml and reload the configuration.";
    /// The limit for the number of prompt versions, or for the bytes of their texts, is reached.
    PROMPT_VERSIONS_FULL = "prompt_versions_full", [429], "Delete prompt versions.";
    /// The limit for the number of prompt experiments, or for the bytes of their texts, is reached.
    PROMPT_EXPERIMENTS_FULL = "prompt_experiments_full", [429], "Delete prompt experiments.";
    /// The prompt version is active, or an experiment that is not completed uses it.
    PROMPT_VERSION_IN_USE = "prompt_version_in_use", [409], "Activate another version, or complete or delete the experiment first.";
    /// The status of the prompt experiment does not allow this.
    PROMPT_EXPERIMENT_STATUS = "prompt_experiment_status", [409], "See the status of the experiment.";
    /// Another prompt experiment of the agent is running.
    PROMPT_EXPERIMENT_RUNNING = "prompt_experiment_running", [409], "Pause or complete the other experiment first.";
}
