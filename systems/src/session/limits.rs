//! Limits of sessions.

agentsvc_components::limits! {
    pub const ALL;
    /// Sessions of one agent. More: 429; a trigger or schedule that runs in new sessions has the outcome `refused`.
    pub const AGENT_SESSIONS_MAX: usize = 100_000;
    /// Sessions of all agents. More: as above. The agents of a user with a limited role, or of a family, may have one in
    /// `POOL_SHARES`.
    pub const SESSIONS_MAX: usize = 10_000_000;
    /// The sessions that strangers began in chats may take one in so many of the bytes of `[sessions] family_max_bytes` and
    /// `user_max_bytes`. More: those that were idle for longest are deleted, and where none is idle a message waits (429).
    pub const STRANGERS_SHARES: u64 = 2;
    /// Histories of many sessions that are cleared at the same time. More: 503 with `Retry-After`.
    pub const CLEARINGS_MAX: usize = 64;
}
