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
    /// Results of one search of memory entries. More: 400.
    pub const ENTRY_HITS_MAX: usize = 100;
    /// Bytes of a search query of memory entries. Longer: 400.
    pub const ENTRY_QUERY_BYTES_MAX: usize = 4 << 10;
    /// Ids of one bulk deletion of memory entries. More: 400.
    pub const ENTRY_BULK_MAX: usize = 10_000;
    /// Agents that the global statistics of memory entries list: those with most entries.
    pub const ENTRY_STATS_AGENTS_MAX: usize = 1_000;
    /// Words of an entry that are compared to find duplicates. More: the first ones.
    pub const ENTRY_WORDS_MAX: usize = 400;
    /// Words that one search for duplicates looks at, those of each comparison included. More: the newest entries are compared,
    /// and the answer says `truncated`.
    pub const ENTRY_STEPS_MAX: usize = 200_000_000;
}
