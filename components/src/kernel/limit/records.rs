//! Limits of models, providers, memory, usage, the audit log, traces, agent types and imports.

limits! {
    pub(super) const ALL;
    /// Models that clients may add to the catalog. More: 429.
    pub const CUSTOM_MODELS_MAX: usize = 1_000;
    /// Aliases that clients may make, and those of the catalog that they may take away. More: 429.
    pub const MODEL_ALIASES_MAX: usize = 1_000;
    /// Bytes of a model's id or alias. Longer: 400.
    pub const MODEL_ID_BYTES_MAX: usize = 256;
    /// Bytes of a catalog that is fetched. Longer: it is refused, the old one stays.
    pub const CATALOG_BYTES_MAX: usize = 4 << 20;
    /// Models of a catalog that is fetched. More: it is refused, the old one stays.
    pub const CATALOG_MODELS_MAX: usize = 10_000;
    /// Bytes of one secret in the vault. More is refused.
    pub const VAULT_SECRET_BYTES_MAX: usize = 64 << 10;
    /// Bytes of a provider's key. Longer: 400.
    pub const PROVIDER_KEY_BYTES_MAX: usize = 8 << 10;
    /// Tests of providers that may be under way at once. More: 429.
    pub const PROVIDER_TESTS_MAX: usize = 4;
    /// Sign-ins at providers that are remembered. More: 429 until one is over.
    pub const PROVIDER_LOGINS_MAX: usize = 64;
    /// Bytes of an agent's name. Longer: 400.
    pub const NAME_BYTES_MAX: usize = 128;
    /// Bytes of a session's label. Longer: 400.
    pub const LABEL_BYTES_MAX: usize = 256;
    /// Bytes of a manifest's text, and of the texts in one after a change. Longer: 400.
    pub const MANIFEST_BYTES_MAX: usize = 256 << 10;
    /// Warnings of one import. More: left out.
    pub const MIGRATION_WARNINGS_MAX: usize = 1_000;
    /// Agents, skills and conversations that are read of another program's home, each. More: left out, with a
    /// warning.
    pub const MIGRATION_ITEMS_MAX: usize = 10_000;
    /// Bytes of a text file that is read of another program's home. Larger: left out, with a warning.
    pub const MIGRATION_TEXT_BYTES_MAX: u64 = 1 << 20;
    /// Bytes of a conversation's file that is read of another program's home. Larger: its end is read.
    pub const MIGRATION_HISTORY_BYTES_MAX: u64 = 32 << 20;
    /// Files of one skill. More: it is left out, with a warning.
    pub const MIGRATION_SKILL_FILES_MAX: usize = 500;
    /// Messages of one imported conversation. More: the importer keeps the newest.
    pub const IMPORTED_MESSAGES_MAX: usize = 2_000;
    /// Bytes of one imported conversation. More: the importer keeps the newest.
    pub const IMPORTED_BYTES_MAX: usize = 4 << 20;
    /// Agent types that are listed; files beyond that, in order of their names, are not, and no new one is made:
    /// 409.
    pub const AGENT_TYPES_MAX: usize = 1_000;
    /// Bytes of a key of an agent's memory. Longer: 400.
    pub const MEMORY_KEY_BYTES_MAX: usize = 256;
    /// Bytes of one value of an agent's memory, as compact JSON. Longer: 400.
    pub const MEMORY_VALUE_BYTES_MAX: usize = 64 << 10;
    /// Levels of objects and arrays in one value of an agent's memory, which an import must still be able to read. More: 400.
    pub const MEMORY_VALUE_DEPTH_MAX: usize = 100;
    /// Entries of one agent's memory. Full: 409.
    pub const MEMORY_ENTRIES_MAX: u32 = 10_000;
    /// Bytes of keys and values of one agent's memory. Full: 409.
    pub const MEMORY_BYTES_MAX: u64 = 16 << 20;
    /// Changes of one agent's memory that the world remembers, to tell whether a writer has seen them. A writer that
    /// is further behind looks again.
    pub const MEMORY_CHANGES_MAX: usize = 64;
    /// Traces kept of one agent's turns, give or take a few hundred; the oldest are erased.
    pub const TRACES_MAX: usize = 10_000;
    /// Bytes of the prompts that are kept in memory to show what model calls sent; the oldest go.
    pub const SENT_CALLS_BYTES_MAX: usize = 32 << 20;
    /// Model calls of which is kept what they sent, and when; the oldest go.
    pub const SENT_CALLS_MAX: usize = 4_096;
    /// One ended turn of so many, on average, has its agent's traces trimmed.
    pub const TRACE_TRIM_EVERY: u128 = 512;
    /// Turns that an agent's metrics are made of: the newest.
    pub const METRIC_TURNS_MAX: usize = 1_000;
    /// Log lines about agents that are kept in memory, of all agents together; the oldest go.
    pub const AGENT_LOG_LINES_MAX: usize = 8_192;
    /// Bytes of a log line about an agent that is kept in memory; longer ones are only written to the log file.
    pub const AGENT_LOG_LINE_BYTES_MAX: usize = 4 << 10;
    /// Days that a clock may be set back before budgets follow it. Less: the hour, day and month that were reached stay in
    /// force until it has caught up.
    pub const BUDGET_CLOCK_BACK_DAYS: u64 = 62;
    /// Models that usage is counted for one by one; what further ones use is counted under `other/other`.
    pub const USAGE_MODELS_MAX: usize = 1_000;
    /// Days that one answer of the daily usage gives at most. More: 400, the export has them.
    pub const USAGE_DAYS_MAX: u32 = 366;
    /// Steps that one answer of the history has at most: 62 days by hour, or a day by minute. More: 400.
    pub const HISTORY_STEPS_MAX: i64 = 1_500;
    /// Agents that one list of budgets gives at most: those that spent most.
    pub const BUDGETS_LISTED_MAX: usize = 10_000;
    /// Bytes of an audit entry's details; the rest is cut.
    pub const AUDIT_DETAILS_BYTES_MAX: usize = 4 << 10;
    /// Entries of the audit trail after which a checkpoint is signed.
    pub const AUDIT_CHECKPOINT_EVERY: u64 = 1_000;
    /// Milliseconds after which an entry of the audit trail is signed, however few there are.
    pub const AUDIT_CHECKPOINT_MS: i64 = 60_000;
    /// Bytes of the file of `audit.heads_file`. More: heads are not written any more, until it is moved away.
    pub const AUDIT_HEADS_BYTES_MAX: u64 = 256 << 20;
    /// Names (of files, keys, tools) that one audit entry lists; of the rest only the number.
    pub const AUDIT_NAMES_MAX: usize = 8;
    /// Audit entries that one request reads. More: cut (spec 3, Limits).
    pub const AUDIT_RECENT_MAX: usize = 500;
    /// Audit entries that one request with a filter looks at. The answer says where to go on.
    pub const AUDIT_SEARCHED_MAX: usize = 20_000;
    /// Searches of the audit trail that run at once.
    pub const AUDIT_SEARCHES_MAX: usize = 2;
    /// Requests that may wait for a verification of the audit trail, and as many for a search. More: 503 with `Retry-After`.
    pub const AUDIT_WALKS_WAITING_MAX: usize = 16;
}
