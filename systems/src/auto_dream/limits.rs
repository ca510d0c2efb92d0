//! Limits of consolidation runs.

agentsvc_components::limits! {
    pub const ALL;
    /// Agents that are looked at in one beat because they are due. More: in the next beats.
    pub const DREAMS_CHECKED_MAX: usize = 32;
    /// Milliseconds after which an agent that was busy when it was due is looked at again.
    pub const DREAM_BUSY_MS: i64 = 60_000;
    /// Pages of memory entries that one run reads, where its limits of calls and tokens suffice for more. More: in the next run.
    pub const DREAM_PAGES_MAX: u32 = 20;
    /// Tokens that a page of memory entries is taken for, to tell how many pages fit into the tokens of a run.
    pub const DREAM_PAGE_TOKENS: u64 = 8_000;
    /// Bytes of what is kept of the end of a run; the rest is cut.
    pub const DREAM_TEXT_BYTES_MAX: usize = 512;
}
