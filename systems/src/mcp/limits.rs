//! Limits of the Model Context Protocol.

agentsvc_components::limits! {
    pub const ALL;
    /// Messages of one batch of MCP clients. More: 400.
    pub const MCP_BATCH_MAX: usize = 64;
    /// Bytes of the answers of one batch after which its further requests fail.
    pub const MCP_BATCH_ANSWER_BYTES_MAX: usize = 1 << 20;
    /// Agents on one page of the tools that MCP clients list. More: further pages.
    pub const MCP_AGENTS_PAGE_MAX: usize = 500;
    /// Seconds over which the calls of one public tool by clients without the API key are joined into one audit entry, after an
    /// entry for the first.
    pub const ANONYMOUS_CALLS_SECS: u64 = 60;
    /// Addresses that such an entry names; calls from further ones are only counted.
    pub const ANONYMOUS_CALLS_PEERS_MAX: usize = 16;
    /// Bytes of one message of an MCP server. More: a program is restarted; over HTTP the request fails.
    pub const MCP_MESSAGE_BYTES_MAX: usize = 16 << 20;
    /// Bytes of the answers of one MCP server over HTTP that are not complete yet. More: the request fails.
    pub const MCP_SERVER_BYTES_MAX: usize = 48 << 20;
    /// Bytes of memory that one message of an MCP server may take once it is read. More: as too many bytes of it.
    pub const MCP_MESSAGE_MEMORY_BYTES_MAX: usize = 48 << 20;
    /// Bytes of memory that the messages of all MCP servers may take at once, from when they are read until they are text. More
    /// wait.
    pub const MCP_MEMORY_BYTES_MAX: usize = 96 << 20;
    /// Bytes of memory up to which a message is not counted among them.
    pub const MCP_MEMORY_UNCOUNTED_BYTES: usize = 64 << 10;
    /// Seconds that a message of an MCP server waits for memory. Longer: as too many bytes of it.
    pub const MCP_MEMORY_WAIT_SECS: u64 = 30;
    /// Bytes of the answers of all MCP servers over HTTP that have not been read yet. More: the request fails.
    pub const MCP_UNREAD_BYTES_MAX: usize = 192 << 20;
    /// Bytes of memory that a list of an MCP server may take. More: its first entries are used.
    pub const MCP_SERVER_LIST_BYTES_MAX: usize = 16 << 20;
    /// Tools of one MCP server. More: the first ones are offered.
    pub const MCP_SERVER_TOOLS_MAX: usize = 1_000;
    /// Bytes of names, descriptions and schemas of one MCP server's tools that are scanned. More: tools behind it are left out.
    pub const MCP_SERVER_SCAN_BYTES_MAX: usize = 4 << 20;
    /// Bytes of a tool's name as agents call it. Longer: the tool is left out.
    pub const MCP_TOOL_NAME_BYTES_MAX: usize = 64;
    /// MCP servers whose accepted tools are kept. More: tools of further ones are not accepted.
    pub const MCP_PINS_MAX: usize = 256;
    /// Bytes of the accepted tools of all MCP servers. More: as too many of them.
    pub const MCP_PINS_BYTES_MAX: usize = 40 << 20;
    /// Changes of the tools of one MCP server that an hour has on the audit log. More: they are in the log alone.
    pub const MCP_CHANGES_NOTED_MAX: u32 = 60;
    /// Names of new, changed and removed tools in one entry of the audit log. More: they are counted.
    pub const MCP_CHANGES_NAMED_MAX: usize = 20;
    /// Requests to one MCP server that wait for their answers. More: the call fails.
    pub const MCP_SERVER_REQUESTS_MAX: usize = 64;
    /// MCP servers that are added over the API. More: 429. `config.toml` can have as many beside them; more are an error.
    pub const MCP_SERVERS_MAX: usize = 100;
    /// Bytes of the configuration of all MCP servers that are added over the API. More: 429.
    pub const MCP_SERVERS_BYTES_MAX: usize = 4 << 20;
    /// Bytes of an MCP server's name. Longer: 400.
    pub const MCP_SERVER_NAME_BYTES_MAX: usize = 32;
    /// Bytes of the transport of one MCP server. Longer: 400.
    pub const MCP_TRANSPORT_BYTES_MAX: usize = 64 << 10;
    /// Variables, and headers, of one MCP server. More: 400.
    pub const MCP_VALUES_MAX: usize = 64;
    /// Bytes of the value of a variable or header. Longer: 400.
    pub const MCP_VALUE_BYTES_MAX: usize = 8 << 10;
    /// Seconds that a call of a tool of an MCP server may take at most.
    pub const MCP_TIMEOUT_SECS_MAX: u64 = 600;
    /// Requests of one MCP server, for input of a person or an answer of a model, that wait for their answers. More: an error.
    pub const MCP_QUESTIONS_OPEN_MAX: usize = 8;
    /// Times that an MCP server may ask a person in one call. More: an error.
    pub const MCP_ELICITATIONS_PER_CALL_MAX: usize = 8;
    /// Bytes of what an MCP server says when it asks a person. More: an error.
    pub const MCP_ELICITATION_TEXT_BYTES_MAX: usize = 4 << 10;
    /// Answers of a model that an MCP server may ask for in one call. More: an error.
    pub const MCP_SAMPLINGS_PER_CALL_MAX: usize = 16;
    /// Model calls of one MCP server at once. More wait.
    pub const MCP_SAMPLINGS_AT_ONCE_MAX: usize = 2;
    /// Bytes of the texts of one request of an MCP server for an answer of a model. More: an error.
    pub const MCP_SAMPLING_TEXT_BYTES_MAX: usize = 256 << 10;
    /// Messages of one such request. More: an error.
    pub const MCP_SAMPLING_MESSAGES_MAX: usize = 100;
    /// Seconds that a model may take for one such request. Longer: an error.
    pub const MCP_SAMPLING_SECS_MAX: u64 = 120;
    /// Tokens of the answers that an MCP server can get in one call at most, whatever its configuration says.
    pub const MCP_SAMPLING_TOKENS_MAX: u64 = 1_000_000;
    /// Rounds in which an MCP server asks for more input for one call. More: the call fails.
    pub const MCP_INPUT_ROUNDS_MAX: usize = 8;
    /// Bytes that are kept of the error output of an MCP server; the oldest go.
    pub const MCP_LOG_BYTES_MAX: usize = 16 << 10;
    /// Sign-ins at one MCP server that wait for the user. More: the oldest ends.
    pub const MCP_SIGN_INS_MAX: usize = 8;
    /// Seconds that a sign-in at an MCP server waits for the user at most.
    pub const MCP_SIGN_IN_SECS_MAX: u64 = 600;
    /// Bytes of one answer of an authorization server, and of metadata. Longer: the sign-in fails.
    pub const MCP_SIGN_IN_ANSWER_BYTES_MAX: usize = 64 << 10;
    /// Entries of the MCP catalog. More: the first ones by their file names are there.
    pub const MCP_CATALOG_ENTRIES_MAX: usize = 500;
    /// Bytes of one file of the MCP catalog. Longer: it is left out, with a warning.
    pub const MCP_CATALOG_FILE_BYTES_MAX: usize = 64 << 10;
}
