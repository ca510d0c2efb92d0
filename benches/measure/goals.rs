//! The figures that the project wants to reach. A program says which of them a row answers; `all` lists those that
//! nothing answered.

/// One of them.
#[derive(Debug)]
pub(crate) struct Goal {
    /// Its name between programs.
    pub(crate) key: &'static str,
    /// What is measured.
    pub(crate) what: &'static str,
    /// What is wanted.
    pub(crate) limit: &'static str,
    /// The program that measures it.
    pub(crate) program: &'static str,
}

/// Declares the goals and the list of all.
macro_rules! goals {
    ($($name:ident, $key:literal, $program:literal, $what:literal, $limit:literal;)*) => {
        $(pub(crate) static $name: Goal = Goal { key: $key, what: $what, limit: $limit, program: $program };)*
        /// All of them.
        pub(crate) static ALL: &[&Goal] = &[$(&$name),*];
    };
}

goals! {
    START, "start", "cold_start", "cold start, empty home: exec to first 200 on /api/health", "<= 30 ms";
    IDLE_MEMORY, "idle_memory", "cold_start", "idle memory after start, no agents", "<= 15 MiB";
    IDLE_CPU, "idle_cpu", "cold_start", "idle CPU, 100,000 agents, nothing due", "< 1 % of a core";
    COMMAND_START, "command_start", "command_start", "a command starts in its sandbox, workspace of 50,000 files",
        "<= 15 ms";
    AGENT_MEMORY, "agent_memory", "agent_memory", "memory per agent with its session", "<= 600 B";
    COME_BACK, "come_back", "snapshot_restore",
        "1M agents and sessions, 100,000 triggers: kill -9, start, first agent read", "<= 3 s";
    COME_BACK_HEALTH, "come_back_health", "snapshot_restore", "the longest answer of health meanwhile", "<= 50 ms";
    SNAPSHOT, "snapshot", "snapshot_restore", "snapshot of a world of 1M agents while it runs", "<= 10 s";
    SNAPSHOT_PAUSE, "snapshot_pause", "snapshot_restore", "the world's pause for it", "<= 10 ms";
    MATCHING, "matching", "trigger_match",
        "10,000 events against 100,000 triggers, mixed patterns, one step", "<= 10 ms";
    FIRING, "firing", "trigger_match", "one event that fires 100,000 triggers: matched, durable, queued", "<= 300 ms";
    DUE, "due", "world_tick",
        "10,000 of 1M schedules due in the same second: longest step, none lost, none twice", "<= 20 ms";
    QUIET_BEAT, "quiet_beat", "world_tick", "beat with 1M agents, triggers and schedules, nothing due", "<= 0.2 ms";
    READ, "read", "http_load", "GET /api/agents/{id}, 32 connections, share of bare hyper", ">= 35 %";
    CREATE, "create", "http_load", "POST /api/agents, durable, 64 connections", ">= 15,000/s";
    TURN, "turn", "http_load",
        "POST message, whole durable turn, 64 connections, 1,000 agents", ">= 4,000/s, p99 <= 50 ms";
    FIRST_TOKEN, "first_token", "http_load", "first streamed token after the model's", "<= 1 ms, p99";
    SUBSCRIBERS, "subscribers", "http_load", "1,000 SSE subscribers on one session: the producer is slowed", "<= 5 %";
    FAIRNESS, "fairness", "fairness",
        "one agent with 10,000 queued messages, 999 with 1 each: the others' p99 wait", "<= 1.2x";
    MCP_CALL, "mcp_call", "mcp", "a call of a warm stdio server: added to its own time", "<= 1 ms, p99";
    MCP_START, "mcp_start", "mcp", "start with 50 MCP servers of 1,000 tools", "not slower than without";
    MCP_MEMORY, "mcp_memory", "mcp", "idle memory with 50 MCP servers of 1,000 tools", "<= 1 MiB more";
    MCP_LIST, "mcp_list", "mcp", "POST /mcp tools/list, 32 connections", ">= 20,000/s";
    PLUGIN_HOOK, "plugin_hook", "plugins", "a hook of a plugin whose process stays: added to its own time", "<= 2 ms, p99";
    CHANNEL_MESSAGES, "channel_messages", "channels", "messages of one adapter, stored", ">= 5,000/s";
    CHANNEL_TURN, "channel_turn", "channels", "5,000 messages a second of one adapter: to the start of the turn", "<= 50 ms, p99";
    CHANNEL_IDLE_CPU, "channel_idle_cpu", "channels", "idle CPU with 200 adapters", "<= 1 % of a core";
    CHANNEL_IDLE_MEMORY, "channel_idle_memory", "channels", "idle memory with 200 adapters", "<= 3 MiB more";
    CHANNEL_STUCK, "channel_stuck", "channels", "an adapter that is stuck delays others", "<= 1 ms, p99";
    LIBRARY_START, "library_start", "library", "start with 1,000 skills and 500 hands", "<= 100 ms slower";
    LIBRARY_RELOAD, "library_reload", "library", "reload of 1,000 skills and of 500 hands that changed", "<= 1 s";
    LIBRARY_MEMORY, "library_memory", "library", "idle memory with 1,000 skills and 500 hands", "<= 20 MiB more";
    MEMORY_AGENT, "memory_agent", "memory_search", "memory search of one of 10,000 agents, 1M entries, p99", "<= 5 ms";
    MEMORY_GLOBAL, "memory_global", "memory_search", "memory search of all of 1M entries, p99", "<= 50 ms";
    MEMORY_ADD, "memory_add", "memory_search", "memory entries added, durable", ">= 5,000/s";
    MEMORY_BYTES, "memory_bytes", "memory_search", "resident memory per memory entry, 1M entries", "<= 64 B";
    MEMORY_REBUILD, "memory_rebuild", "memory_search", "index of 1M memory entries built while serving", "<= 60 s";
    MEMORY_TURN, "memory_turn", "memory_turn", "what memory retrieval adds to a turn, p99", "<= 2 ms";
    CLUSTER_KILLED, "cluster_killed", "cluster", "cluster, 100,000 agents: owner killed to the next acknowledged write",
        "<= 3 s, p99";
    CLUSTER_FROZEN, "cluster_frozen", "cluster", "cluster, 100,000 agents: owner frozen to the next acknowledged write",
        "<= 3 s, p99";
    CLUSTER_LEADER, "cluster_leader", "cluster", "cluster: the stream's leader killed to the next acknowledged write",
        "<= 12 s, p99";
    CLUSTER_ANSWERS, "cluster_answers", "cluster", "cluster: all nodes replaced under load, 5xx but `moving`", "0";
    CLUSTER_WAIT, "cluster_wait", "cluster", "cluster: all nodes replaced under load, longest wait", "<= 1 s";
    CLUSTER_TURNS, "cluster_turns", "cluster", "cluster: POST message, whole durable turn", ">= 2,000/s";
    CLUSTER_CREATES, "cluster_creates", "cluster", "cluster: POST /api/agents, durable", ">= 8,000/s";
    SOAK, "soak", "soak", "an hour of mixed load: slope of the resident memory", "0 within its noise";
}
