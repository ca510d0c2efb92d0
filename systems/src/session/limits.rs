//! Limits of sessions.

agentsvc_components::limits! {
    pub const ALL;
    /// Sessions of one agent. More: 429; a trigger or schedule that runs in new sessions has the outcome `refused`.
    pub const AGENT_SESSIONS_MAX: usize = 100_000;
    /// Sessions of all agents. More: as above.
    pub const SESSIONS_MAX: usize = 10_000_000;
}
