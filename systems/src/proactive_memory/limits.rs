//! Limits of memory entries.

agentsvc_components::limits! {
    pub const ALL;
    /// Bytes of the content of a memory entry. Longer: 400.
    pub const ENTRY_CONTENT_BYTES_MAX: usize = 16 << 10;
    /// Bytes of the category of a memory entry. Longer: 400.
    pub const ENTRY_CATEGORY_BYTES_MAX: usize = 64;
    /// Bytes of a memory entry's `user_id`. Longer: 400.
    pub const ENTRY_USER_BYTES_MAX: usize = 256;
    /// Tags of one memory entry. More: 400.
    pub const ENTRY_TAGS_MAX: usize = 32;
    /// Bytes of one tag of a memory entry. Longer: 400.
    pub const ENTRY_TAG_BYTES_MAX: usize = 64;
    /// Bytes of the metadata of a memory entry, as compact JSON. Longer: 400.
    pub const ENTRY_METADATA_BYTES_MAX: usize = 4 << 10;
    /// Bytes of a memory entry's `source`. Longer: 400.
    pub const ENTRY_SOURCE_BYTES_MAX: usize = 64;
    /// Earlier contents that a memory entry keeps. More: the oldest go.
    pub const ENTRY_VERSIONS_MAX: usize = 10;
    /// Memory entries of one agent, whatever `[proactive_memory] max_memories_per_agent` says.
    pub const ENTRIES_MAX: u32 = 100_000;
    /// Bytes of the texts of one agent's memory entries. Full: 409.
    pub const ENTRIES_BYTES_MAX: u64 = 256 << 20;
    /// Different categories of one agent's memory entries. More: 409.
    pub const ENTRY_CATEGORIES_MAX: usize = 64;
    /// Memory entries that one command changes. More: it is done in several.
    pub const ENTRY_CHANGES_MAX: usize = 1_000;
    /// Days that a memory entry is kept that another has replaced.
    pub const ENTRY_REPLACED_DAYS: i64 = 30;
    /// Memory entries of one import. More: 400.
    pub const ENTRY_IMPORT_MAX: usize = 100_000;
    /// Imports of memory entries that run at once. More: 429.
    pub const ENTRY_IMPORTS_MAX: usize = 4;
    /// Ended imports of memory entries whose result is remembered. More: the oldest are forgotten.
    pub const ENTRY_IMPORTS_ENDED_MAX: usize = 64;
    /// Messages of which one request extracts memory entries. More: 400.
    pub const EXTRACT_MESSAGES_MAX: usize = 100;
    /// Memory entries that are extracted of one message. More: left out.
    pub const EXTRACTED_MAX: usize = 20;
    /// Memory entries that are extracted of the messages of one request. More: left out.
    pub const EXTRACTED_REQUEST_MAX: usize = 100;
    /// Bytes of a user's message that are looked at for facts. More: the first ones.
    pub const EXTRACTED_TEXT_BYTES_MAX: usize = 16 << 10;
    /// Turns of one agent that wait to be memorised. More: those turns make no entries, which
    /// `agentsvc_jobs_refused_total` counts.
    pub const AGENT_MEMORIZE_OPEN_MAX: usize = 64;
    /// Turns that wait to be memorised by rules, and by a model; those of a user or family may be one in `POOL_SHARES` of them. More:
    /// as for one agent.
    pub const MEMORIZE_OPEN_MAX: usize = 20_000;
    /// Turns that are memorised at once by rules, and by a model; of a user one in `POOL_SHARES` of them, of a family three. More:
    /// they wait.
    pub const MEMORIZE_OUT_MAX: usize = 8;
    /// Tries to memorise a turn. More: it makes no entries.
    pub const MEMORIZE_TRIES_MAX: u32 = 12;
    /// Milliseconds before the second try to memorise a turn. They double from try to try.
    pub const MEMORIZE_BACKOFF_MS: i64 = 10_000;
    /// Milliseconds between two tries to memorise a turn.
    pub const MEMORIZE_BACKOFF_MS_MAX: i64 = 600_000;
    /// Milliseconds after which a turn that is not memorised makes no entries.
    pub const MEMORIZE_DEADLINE_MS: i64 = 24 * 3_600_000;
    /// Milliseconds of one try to memorise a turn. Longer: it failed.
    pub const MEMORIZE_TIMEOUT_MS: u32 = 150_000;
    /// Bytes of the input of a job that memorises a turn.
    pub const MEMORIZE_INPUT_BYTES_MAX: usize = 1 << 10;
    /// Seconds that the model has that extracts entries of a turn. Longer: the call is stopped.
    pub const MEMORIZE_MODEL_SECS_MAX: u64 = 90;
    /// Tokens of the prompt of a model that extracts entries of a turn; the texts in it are cut to fewer bytes than that.
    pub const MEMORIZE_PROMPT_TOKENS_MAX: u32 = 32_768;
    /// Tokens of the answer of a model that extracts entries of a turn. Longer answers are cut by the model, and not used.
    pub const MEMORIZE_ANSWER_TOKENS_MAX: u32 = 4_096;
    /// Bytes of the answer of a model that extracts entries of a turn. Longer: it is not used.
    pub const MEMORIZE_ANSWER_BYTES_MAX: usize = 64 << 10;
    /// Bytes of one fact that a model extracts. Longer: left out.
    pub const MEMORIZE_FACT_BYTES_MAX: usize = 1 << 10;
    /// Relations that are extracted of one turn. More: left out.
    pub const MEMORIZE_RELATIONS_MAX: usize = 40;
    /// Entries that a model that extracts entries of a turn is shown. More: those that have most words in common with it.
    pub const MEMORIZE_NEIGHBOURS_MAX: usize = 10;
    /// Milliseconds that a turn waits for the search of its agent's memory entries. Longer: it goes on without.
    pub const RECALL_WAIT_MS: u64 = 750;
    /// Searches of memory entries for turns at once. More: they wait, as long as a turn waits for its search.
    pub const RECALLS_MAX: usize = 16;
    /// The same for turns of the agents of a user with a limited role, or of a family. More: likewise.
    pub const RECALLS_FAMILY_MAX: usize = RECALLS_MAX / 4;
    /// Bytes of the content of a memory entry that the trace of a turn keeps. Longer: cut.
    pub const RECALLED_EXCERPT_BYTES: usize = 256;
    /// Results of one search of memory entries. More: 400.
    pub const ENTRY_HITS_MAX: usize = 100;
    /// Bytes of a search query of memory entries. Longer: 400.
    pub const ENTRY_QUERY_BYTES_MAX: usize = 4 << 10;
    /// Ids of one bulk deletion of memory entries. More: 400.
    pub const ENTRY_BULK_MAX: usize = 10_000;
    /// Agents, and categories, that the global statistics of memory entries list: those with most entries.
    pub const ENTRY_STATS_NAMES_MAX: usize = 1_000;
    /// Bytes of the texts of one page of memory entries, their histories included. More: the page ends early.
    pub const ENTRY_PAGE_BYTES_MAX: usize = 1 << 20;
    /// Words of an entry that are compared to find duplicates. More: the first ones.
    pub const ENTRY_WORDS_MAX: usize = 400;
    /// Words that one search for duplicates looks at, those of each comparison included. More: the newest entries are compared,
    /// and the answer says `truncated`.
    pub const ENTRY_STEPS_MAX: usize = 200_000_000;
}
