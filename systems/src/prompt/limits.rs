//! Limits of prompt versions and experiments.

agentsvc_components::limits! {
    pub const ALL;
    /// Prompt versions of all agents; a user or family may have one in `POOL_SHARES` of them. More: 429.
    pub const PROMPT_VERSIONS_MAX: usize = 100_000;
    /// Bytes of the texts of all prompt versions, likewise. More: 429.
    pub const PROMPT_VERSIONS_BYTES_MAX: usize = 64 << 20;
    /// Prompt versions of one agent. More: 429.
    pub const AGENT_PROMPT_VERSIONS_MAX: usize = 100;
    /// Bytes of the texts of the prompt versions of one agent. More: 429.
    pub const AGENT_PROMPT_VERSIONS_BYTES_MAX: usize = 1 << 20;
    /// Bytes of the system prompt of one version. Longer: 400.
    pub const PROMPT_BYTES_MAX: usize = 64 << 10;
    /// Bytes of the description of a prompt version, or of a variant. Longer: 400.
    pub const PROMPT_DESCRIPTION_BYTES_MAX: usize = 1_024;
    /// Tools, and variables, that one prompt version names. More: 400.
    pub const PROMPT_WORDS_MAX: usize = 100;
    /// Bytes of the name of a tool, a variable, a variant or an experiment. Longer: 400.
    pub const PROMPT_NAME_BYTES_MAX: usize = 128;
    /// Prompt experiments of all agents; a user or family may have one in `POOL_SHARES` of them. More: 429.
    pub const PROMPT_EXPERIMENTS_MAX: usize = 10_000;
    /// Bytes of the texts of all prompt experiments, likewise. More: 429.
    pub const PROMPT_EXPERIMENTS_BYTES_MAX: usize = 16 << 20;
    /// Prompt experiments of one agent. More: 429.
    pub const AGENT_PROMPT_EXPERIMENTS_MAX: usize = 20;
    /// Variants of one prompt experiment. More: 400.
    pub const PROMPT_VARIANTS_MAX: usize = 10;
    /// Turns of one prompt experiment that take feedback; the oldest go.
    pub const EXPERIMENT_IMPRESSIONS_KEPT_MAX: usize = 1_000;
    /// Turns of all prompt experiments that take feedback; the oldest of the user or family that has most go.
    pub const PROMPT_IMPRESSIONS_KEPT_MAX: usize = 100_000;
}
