//! Limits of agents and their manifests.

agentsvc_components::limits! {
    pub const ALL;
    /// Agents. More: 429.
    pub const AGENTS_MAX: usize = 2_000_000;
    /// Live agents that descend from one agent that a client created: those that it spawned, those that they spawned,
    /// and so on. More: an error result.
    pub const AGENT_DESCENDANTS_MAX: usize = 1_000;
    /// Bytes of the texts of the manifests of those descendants. More: an error result.
    pub const AGENT_DESCENDANTS_BYTES_MAX: usize = 16 << 20;
    /// Bytes of the texts of all manifests; agents with equal manifests share one. More: 429.
    pub const MANIFESTS_BYTES_MAX: usize = 4 << 30;
}
