//! Limits of the world, sessions, turns, tools and prompts.

limits! {
    pub(super) const ALL;
    /// Commands that may wait for the world thread; those of large bodies count towards `BODIES_BYTES_MAX`, too.
    /// Full: 503 with `Retry-After`.
    pub const BRIDGE_COMMANDS_MAX: usize = 8_192;
    /// Arrivals taken from the bridge before a step is closed; the rest waits for the next step.
    pub const STEP_ARRIVALS_MAX: usize = 512;
    /// Rounds of systems within one step before what is left carries over to the next step.
    pub const STEP_ROUNDS_MAX: u32 = 64;
    /// Bytes of deltas that may wait for the store writer. Beyond: writes are refused with 503, reads go on.
    pub const STORE_BACKLOG_BYTES_MAX: usize = 64 << 20;
    /// The same from which on triggers, schedules and workflows begin no turns. They go on once half of it is stored.
    pub const STORE_BACKLOG_FIRES_MAX: usize = STORE_BACKLOG_BYTES_MAX / 8;
    /// The same from which on no model calls and no tool calls go out. They go on once half of it is stored.
    pub const STORE_BACKLOG_CALLS_MAX: usize = STORE_BACKLOG_BYTES_MAX / 2;
    /// Bytes that must be free on the disk of the store. Fewer: changes are refused with 503 (`read_only`) until
    /// `STORE_RESERVE_BYTES` more are free; reads go on.
    pub const STORE_ROOM_BYTES: u64 = 16 << 20;
    /// Bytes of `data/reserve`, which is deleted on a full disk so that the store can write and a start succeeds.
    pub const STORE_RESERVE_BYTES: u64 = 32 << 20;
    /// Bytes that must be free for a commit beside twice its own. Fewer: it waits, and so do responses to its changes.
    pub const COMMIT_ROOM_BYTES: u64 = 4 << 20;
    /// Bytes the store writer joins into one commit.
    pub const COMMIT_BYTES_MAX: usize = 8 << 20;
    /// Turns in one session's inbox, the running one included, above which messages are refused with 429 and
    /// `Retry-After`; what triggers and schedules fire still comes in.
    pub const SESSION_INBOX_MAX: u32 = 16_384;
    /// Turns that answer the same message; beyond, a message that repeats one of them is refused with 400.
    pub const TURN_VARIANTS_MAX: usize = 32;
    /// Open turns in the whole world. Full: 503 with `Retry-After`. The agents of a user with a limited role, or of a family, may
    /// have one in `POOL_SHARES`. More: 429 with `Retry-After`; what triggers and schedules fire has the outcome `refused`.
    pub const TURNS_OPEN_MAX: usize = 1_000_000;
    /// Turns and sessions that end in one step because their agent was deleted or stopped, or their session deleted, reset or cleared;
    /// the rest waits for the next step.
    pub const TURNS_ENDED_PER_STEP_MAX: usize = 256;
    /// Model calls that may be out at once, over all providers; turns wait beyond. Tool runs are not counted here:
    /// they are bounded by `TOOL_CALLS_PER_TURN_MAX` for each open turn.
    pub const EFFECTS_OUT_MAX: usize = 65_536;
    /// Model calls out at once for one provider, unless `[queue.concurrency]` says otherwise.
    pub const PROVIDER_CALLS_DEFAULT: u32 = 256;
    /// Calls at once to a provider from which on a family of agents leaves one in `POOL_SHARES` to others. A user with a limited role
    /// has one in `POOL_SHARES`, and one at least.
    pub const PROVIDER_CALLS_SHARED_MIN: u32 = 16;
    /// Tool calls in one answer; the rest get an error result.
    pub const TOOL_CALLS_PER_ANSWER_MAX: usize = 64;
    /// Tool calls that run in one turn; the next is refused and ends it (spec 1, Limits, loop guard).
    pub const TOOL_CALLS_PER_TURN_MAX: u32 = 30;
    /// Bytes of one message. Longer: 413 by the body limit, 400 by the field.
    pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
    /// Tool calls that may be out at once, over all turns; the rest waits, fairly over users and families of agents.
    pub const TOOLS_OUT_MAX: usize = 4_096;
    /// The same of those who share places: the agents of a user with a limited role, or of a family, which is an agent that a client
    /// created and all that descend from it. The rest waits.
    pub const TOOLS_OUT_FAMILY_MAX: usize = TOOLS_OUT_MAX / 4;
    /// Tool calls of clients that run at once, outside of turns. More: 503.
    pub const TOOLS_DIRECT_MAX: usize = 64;
    /// Notes to the owner that one turn may leave. More: an error result.
    pub const NOTICES_MAX: usize = 16;
    /// Bytes of one note to the owner. Longer: an error result.
    pub const NOTICE_BYTES_MAX: usize = 4 << 10;
    /// Bytes of the reason of a correction of a budget. Longer: 400.
    pub const BUDGET_REASON_BYTES_MAX: usize = 1_024;
    /// Sources of untrusted content that a turn remembers by name; of more only the labels are known.
    pub const TAINT_SOURCES_MAX: usize = 8;
    /// Bytes of the name of such a source. Longer: cut.
    pub const TAINT_SOURCE_BYTES_MAX: usize = 160;
    /// Bytes of a text beyond which it is scanned off the runtime's threads, and bytes of replies that the world scans in a step.
    pub const SCAN_INLINE_BYTES_MAX: usize = 16 << 10;
    /// Replies of other agents that wait to be scanned, and of one user or family one in `POOL_SHARES` of them. More: an error result.
    pub const REPLY_SCANS_MAX: usize = 16_384;
    /// Bytes of those replies; likewise.
    pub const REPLY_SCANS_BYTES_MAX: usize = 64 << 20;
    /// Such replies that are out to be scanned at once; the rest waits, fairly over users and families of agents.
    pub const REPLY_SCANS_OUT_MAX: usize = 64;
    /// Bytes of the query of a URL that a turn may fetch once it has read untrusted content. Longer: refused.
    pub const TAINTED_QUERY_BYTES_MAX: usize = 512;
    /// The same of its whole path and query.
    pub const TAINTED_PATH_BYTES_MAX: usize = 1_024;
    /// Bytes of the URLs of one call of such a turn. More: the call is refused, as what is longer is not searched for secrets.
    pub const TAINTED_URL_BYTES_MAX: usize = 2 << 10;
    /// Bytes of the texts of a search, or for a page of the browser, of one call of such a turn; likewise.
    pub const TAINTED_TEXT_BYTES_MAX: usize = 8 << 10;
    /// Addresses that the user gave in a session or that it has read, which its tainted turns may fetch. More: the
    /// oldest are forgotten.
    pub const ADDRESSES_MAX: usize = 512;
    /// Bytes of a tool result that go into the conversation; a longer one is stored whole beside it, with an excerpt
    /// here.
    pub const TOOL_RESULT_BYTES_MAX: usize = 32 << 10;
    /// Bytes of a tool result that are stored at all; the rest is cut.
    pub const TOOL_RESULT_STORED_BYTES_MAX: usize = 1 << 20;
    /// Live agents that one agent may have spawned. More: an error result.
    pub const AGENT_CHILDREN_MAX: usize = 100;
    /// Agents that may wait for, or spawn, each other in a row. Longer: an error result.
    pub const AGENT_CHAIN_MAX: usize = 8;
    /// Bytes of a model's whole answer; the rest is cut and the turn ends.
    pub const ANSWER_BYTES_MAX: usize = 4 << 20;
    /// Messages of one conversation that comes with a request. More: 400.
    pub const CONVERSATION_MESSAGES_MAX: usize = 2_048;
    /// Bytes of such a request, images included. More: 413.
    pub const CONVERSATION_BYTES_MAX: usize = 36 << 20;
    /// Tools of the client in one request. More: 400.
    pub const CLIENT_TOOLS_MAX: usize = 128;
    /// Messages of a session above which it is compacted (spec 1, Limits, auto-compaction).
    pub const COMPACTION_MESSAGES: u32 = 80;
    /// Turns at the end of a session that no compaction summarises.
    pub const COMPACTION_KEPT_TURNS: u32 = 10;
    /// Messages that must come before an automatic compaction is tried again in a session.
    pub const COMPACTION_PAUSE_MESSAGES: u32 = 20;
    /// Compactions under way in the whole world. More: automatic ones wait for the next turn's end, others get 503.
    pub const COMPACTIONS_MAX: usize = 16_384;
    /// Sessions whose pause between compactions is remembered. More: one of them is forgotten and may try sooner.
    pub const COMPACTION_PAUSES_MAX: usize = 16_384;
    /// Requests that may wait for one compaction. More: 429.
    pub const COMPACTION_WAITERS_MAX: usize = 64;
    /// Bytes of a summary. Longer: the compaction fails.
    pub const SUMMARY_BYTES_MAX: usize = 32 << 10;
    /// Model calls of one compaction; what is then not summarised is left to the next one.
    pub const SUMMARY_CALLS_MAX: usize = 8;
    /// Summaries of one log that are read together; older ones are left out.
    pub const SUMMARIES_MAX: usize = 1_000;
    /// Past messages that one prompt may hold before the token budget is even asked.
    pub const PROMPT_MESSAGES_MAX: usize = 400;
}
