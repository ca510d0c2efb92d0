//! Limits of requests, connections, streams, uploads and files.

limits! {
    pub(super) const ALL;
    /// Wrong codes of the second factor in a row, of one user or key for one purpose. Then every code is a 429 for a while.
    pub const TOTP_WRONG_MAX: u32 = 5;
    /// Seconds of the first such while; each further one without a right code in between takes twice as long.
    pub const TOTP_LOCK_SECS: u64 = 60;
    /// Seconds of the longest one.
    pub const TOTP_LOCK_SECS_MAX: u64 = 3_600;
    /// Users and keys whose wrong codes are remembered, for each purpose. More: those that are not locked are forgotten first.
    pub const TOTP_TRIED_MAX: usize = 256;
    /// Keys and sessions, each at one address, and people in chats, whose grace period after a right code is remembered. More: they need a code for each decision.
    pub const TOTP_GRACES_MAX: usize = 1_024;
    /// Bytes of text that the attachments of one message may add. More: 400.
    pub const ATTACHED_BYTES_MAX: usize = 8 << 20;
    /// Pieces of a request body that may be small, such as chunks and frames of HTTP/2. Beyond them there may be one for each
    /// [`BODY_PIECE_BYTES`]. More: 400, and the connection is closed.
    pub const BODY_PIECES_FREE: u64 = 4_096;
    /// Bytes that pieces of a request body have on average, when there are many.
    pub const BODY_PIECE_BYTES: u64 = 64;
    /// Bindings of the web chat. More: 409.
    pub const BINDINGS_MAX: usize = 100;
    /// Items of one page of a list, and the default when streaming a whole list.
    pub const PAGE_ITEMS_MAX: usize = 1_000;
    /// Items of one bulk request. More: 400.
    pub const BULK_ITEMS_MAX: usize = 10_000;
    /// Entities one page of a filtered list looks at before it answers with what it found and a cursor.
    pub const PAGE_SCAN_MAX: usize = 4_096;
    /// Such pages for one request with `limit`. More: the answer is short, even empty, and has a cursor.
    pub const LIST_READS_MAX: usize = 4;
    /// Events a slow stream subscriber may fall behind before it is told what it missed.
    pub const STREAM_BACKLOG_MAX: usize = 1_024;
    /// Bytes of what a running turn said that are kept for who attaches later, from its first watcher on. Beyond,
    /// what was kept is dropped, and who attaches is told how much it missed.
    pub const STREAM_SAID_BYTES_MAX: usize = 256 << 10;
    /// Events of the same, a run of text being one.
    pub const STREAM_SAID_EVENTS_MAX: usize = 512;
    /// Turns of one session that were posted with a stream and whose first word is waited for, also when the client
    /// leaves.
    pub const STREAM_TURNS_EXPECTED_MAX: usize = 1_024;
    /// Uploads and files written over HTTP that may be on their way in at once. More: 503 with `Retry-After`.
    pub const UPLOADS_OPEN_MAX: usize = 64;
    /// The same of one user, or of one named key without a user. More: likewise.
    pub const UPLOADS_OPEN_OF_USER_MAX: usize = UPLOADS_OPEN_MAX / 4;
    /// Works at once that keep a processor busy for long, such as the scan of a long text or the comparison of two; a user with a
    /// limited role, a family of agents or the clients of an address may have one in `POOL_SHARES` of them. More: they wait.
    pub const CPU_WORKS_MAX: usize = 4;
    /// Seconds for a client to send a file. Longer: 408.
    pub const UPLOAD_SECS_MAX: u64 = 900;
    /// Attachments of one message. More: 400.
    pub const ATTACHMENTS_MAX: usize = 32;
    /// Characters of one attachment's text; the rest is cut, and the text says so (spec 1, Limits).
    pub const ATTACHMENT_CHARS_MAX: usize = 200_000;
    /// Attachments of messages that are read at once, without the PDFs; the next wait.
    pub const ATTACHING_MAX: usize = 8;
    /// The same of one user or agent.
    pub const ATTACHING_OF_ONE_MAX: usize = ATTACHING_MAX / 4;
    /// Seconds that an attachment may wait for others that are read, and a PDF for other PDFs. Longer: 503.
    pub const ATTACHING_WAIT_SECS_MAX: u64 = 30;
    /// PDFs that are read at once; the next wait.
    pub const PDFS_READ_MAX: usize = 2;
    /// Seconds for reading one PDF. Longer: what was read so far counts.
    pub const PDF_SECS_MAX: u64 = 20;
    /// Images of one prompt that are sent to a model, the newest; older ones become a line of text.
    pub const PROMPT_IMAGES_MAX: usize = 16;
    /// Bytes of the images of one prompt; what would exceed it becomes a line of text.
    pub const PROMPT_IMAGE_BYTES_MAX: u64 = 20 << 20;
    /// Bytes of one WebSocket message of a client, as of a JSON body. More: closed with 1009.
    pub const SOCKET_MESSAGE_BYTES_MAX: usize = 2 << 20;
    /// Messages of one WebSocket that wait to be taken; the socket is not read beyond.
    pub const SOCKET_INPUTS_MAX: usize = 16;
    /// Turns of one WebSocket that are not answered yet. More: the message `error`.
    pub const SOCKET_TURNS_MAX: usize = 32;
    /// Messages for one WebSocket client that wait to be sent, text deltas not counted; the socket is not read
    /// beyond.
    pub const SOCKET_OUTBOX_MAX: usize = 64;
    /// Bytes for one WebSocket client that wait to be sent before text deltas are left out and counted in `lagged`.
    /// From twice that on the socket is not read, and nothing of what it said is begun.
    pub const SOCKET_OUTBOX_BYTES_MAX: usize = 1 << 20;
    /// Seconds a WebSocket client may be silent before it is pinged; twice that: closed.
    pub const SOCKET_SILENCE_SECS_MAX: u64 = 30;
    /// Agents above which `agents_updated` shows only the connection's own agent and those that changed.
    pub const AGENTS_PUSH_ALL_MAX: usize = 1_000;
    /// Changed agents that one `agents_updated` shows; the rest waits for the next.
    pub const AGENTS_PUSH_CHANGED_MAX: usize = 1_000;
    /// Changed agents that wait for `agents_updated`; a change beyond is not pushed.
    pub const AGENTS_CHANGED_MAX: usize = 65_536;
    /// Bytes of a request's headers. More: 431.
    pub const HEADER_BYTES_MAX: usize = 16 << 10;
    /// Parameters of a query. More: 400.
    pub const QUERY_PARAMETERS_MAX: usize = 64;
    /// Bytes of a JSON body unless the route says otherwise. More: 413.
    pub const BODY_BYTES_MAX: usize = 2 << 20;
    /// Bytes of a body of a request without the API key, where one is set. More: 413.
    pub const BODY_KEYLESS_BYTES_MAX: usize = 16 << 10;
    /// The same where the route has a bound of its own that is no larger than this.
    pub const BODY_KEYLESS_DECLARED_BYTES_MAX: usize = 64 << 10;
    /// Bytes at the beginning of each body and WebSocket message that count towards `BODIES_SMALL_BYTES_MAX`; what
    /// is beyond counts towards `BODIES_BYTES_MAX`.
    pub const BODY_SMALL_BYTES: usize = 16 << 10;
    /// Bytes of bodies and WebSocket messages that are held at once, as far as they are large: so many of clients with the API key, as
    /// many of users and named keys with a limited role, each of whom may have a quarter of it, and a quarter of it of requests without
    /// the API key, where one is set. In all that is at most 2.25 times as much. More: 503 with `Retry-After`.
    pub const BODIES_BYTES_MAX: usize = 256 << 20;
    /// The same of their beginnings.
    pub const BODIES_SMALL_BYTES_MAX: usize = 512 << 20;
    /// Bytes that one JSON body takes at most once it is read: its own, and those of its objects, arrays and their members,
    /// which count towards `BODIES_BYTES_MAX`, too. More: 413.
    pub const JSON_BYTES_MAX: usize = 192 << 20;
    /// Bytes of an answer from which on it counts towards `ANSWERS_BYTES_MAX`.
    pub const ANSWER_SMALL_BYTES: usize = 16 << 10;
    /// Bytes of an answer for each of which it costs one more unit of the client's rate; streamed answers and what the daemon
    /// keeps anyway cost no more.
    pub const ANSWER_UNIT_BYTES: usize = 64 << 10;
    /// Bytes of larger answers that wait until their clients read them; a quarter of it for one client: a user or named key, or an
    /// address. Those with a limited role have three quarters of both, and connections that have not shown the API key half.
    /// What the daemon keeps anyway does not count. More: 503 with `Retry-After`, and streamed answers break off.
    pub const ANSWERS_BYTES_MAX: usize = 512 << 20;
    /// Bytes of smaller answers on HTTP/2 streams that wait until clients of any address read them; three quarters of it for
    /// those with a limited role, and half for connections that have not shown the API key. More: a connection that leaves one
    /// unread has no further streams (`REFUSED_STREAM`); those that read are served.
    pub const ANSWERS_SMALL_BYTES_MAX: usize = 256 << 20;
    /// Open connections; fewer where the system permits fewer open files. More: 503 and closed.
    /// A standby of a cluster passes on half as many requests at once, streams and WebSockets included: of clients whose key was not
    /// found right yet a quarter of them, of those that show none an eighth, of users and named keys with a limited role three quarters
    /// together with those; one of each kind has one in `POOL_SHARES` of that. Another client with a right key leaves one in
    /// `POOL_SHARES` of all to others. More: 503.
    pub const CONNECTIONS_MAX: usize = 20_000;
    /// Open connections of one client that have not shown a valid API key, where one is needed. One client is an IPv4 address, an
    /// IPv6 /64 network, or all loopback addresses. More: the oldest idle one of them is closed.
    pub const CONNECTIONS_KEYLESS_MAX: usize = 2_048;
    /// The same of all clients, and at most half of the connections that may be open. More: that of the client with the most
    /// of them is closed.
    pub const CONNECTIONS_KEYLESS_ALL_MAX: usize = CONNECTIONS_MAX / 2;
    /// Open connections that have shown the key of a user or a named key with a limited role, and at most three eighths of the
    /// connections that may be open. More: 503. As many requests of all of them are answered at once, streams and WebSockets
    /// included. More: 429.
    pub const CONNECTIONS_LIMITED_MAX: usize = CONNECTIONS_MAX / 8 * 3;
    /// The same of one of them, and at most a quarter of what all of them may have.
    pub const CONNECTIONS_USER_MAX: usize = CONNECTIONS_LIMITED_MAX / 4;
    /// Keys that the owner of a cluster has found right and that a standby remembers. More: the one is forgotten that was shown longest
    /// ago, and counts as not found right until it is shown again.
    pub const KEYS_PROVEN_MAX: usize = 8_192;
    /// HTTP/2 streams that are answered at once on a connection that has not shown a valid API key. More: refused with
    /// `REFUSED_STREAM`.
    pub const STREAMS_KEYLESS_MAX: u64 = 8;
    /// Answers over HTTP/2 that the clients of one address may leave unread, however small; those with and without an API key
    /// count apart, and those of users with a limited role as their requests. More: a connection that leaves one unread has no
    /// further streams (`REFUSED_STREAM`).
    pub const ANSWERS_UNREAD_MAX: usize = 4_096;
    /// Of the files that the system permits to be open, those that are not for connections but for the store,
    /// workspaces, calls and tools; half of them where there are fewer than twice as many.
    pub const FILES_RESERVED: u64 = 1_024;
    /// Seconds for a client to send its headers. Longer: closed.
    pub const HEADER_SECS_MAX: u64 = 10;
    /// Seconds for a client to send its body, or a WebSocket message. Longer: 408, or closed with 1008.
    pub const BODY_SECS_MAX: u64 = 30;
    /// Buckets the rate limiter remembers before it sweeps out full ones; a client has up to three.
    pub const RATE_KEYS_MAX: usize = 100_000;
    /// Bytes of a request's path and query. More: 414.
    pub const URI_BYTES_MAX: usize = 8 << 10;
    /// Milliseconds between two times at which the use of an API key is stored.
    pub const KEY_USE_STORED_MS: i64 = 10 * 60 * 1_000;
    /// Seconds a connection may stay open between requests.
    pub const IDLE_SECS_MAX: u64 = 90;
    /// Seconds a client may take nothing of an answer that is ready. Longer: an HTTP/2 stream is reset, another connection
    /// closed.
    pub const STALL_SECS_MAX: u64 = 60;
    /// Seconds of the same while answers take more than half of `ANSWERS_BYTES_MAX`, or those of the client more than half
    /// of its share, so that there is room for clients that read.
    pub const STALL_CROWDED_SECS_MAX: u64 = 10;
    /// Requests of one connection that are refused with 429 in a row, because its client is over its rate or sent many wrong
    /// API keys. Then the connection is closed.
    pub const REFUSALS_MAX: u32 = 100;
    /// Seconds for requests in flight to end when the daemon stops. Longer: cut off.
    pub const DRAIN_SECS_MAX: u64 = 10;

    /// Milliseconds a request waits for the world to load, unless `[server] loading_wait_ms` sets another time.
    pub const LOADING_MS_MAX: u32 = 5_000;
    /// Bytes of a path in a workspace. Longer: refused.
    pub const PATH_BYTES_MAX: usize = 1_024;
    /// Names in a path of a workspace; listings and recursive deletions go no deeper either. Deeper: refused.
    pub const PATH_DEPTH_MAX: usize = 32;
    /// Bytes of one file that a tool or a route writes or reads. Larger: refused; commands have their own limit.
    pub const FILE_BYTES_MAX: u64 = 64 << 20;
    /// Entries of one listing of a workspace; the listing says that there are more.
    pub const FILE_LIST_MAX: usize = 10_000;
    /// Entries that one listing or one recursive deletion looks at. More: the listing is cut, the deletion stops
    /// with an error.
    pub const FILE_SCAN_MAX: usize = 100_000;
    /// Commands of agents that run at once; the next wait for their turn.
    pub const SHELLS_MAX: usize = 64;
    /// The same of those who share places: the agents of a user with a limited role, or of a family, which is an agent that a client
    /// created and all that descend from it.
    pub const SHELLS_FAMILY_MAX: usize = SHELLS_MAX / 4;
    /// Fetches of the web tools that may be under way at once; the rest waits, within its time limit.
    pub const WEB_FETCHES_MAX: usize = 64;
    /// The same of those who share places.
    pub const WEB_FETCHES_FAMILY_MAX: usize = WEB_FETCHES_MAX / 4;
    /// Calls of tools that can take megabytes of memory, such as `file_read`, that run at once. More: they wait.
    pub const HEAVY_CALLS_MAX: usize = 8;
    /// Such calls of those who share places that run at once. More: they wait.
    pub const HEAVY_CALLS_FAMILY_MAX: usize = HEAVY_CALLS_MAX / 2;
    /// Bytes of memory for the answers to the requests of browsers of those who share places that are read and handed on at the same
    /// time. Beyond it one of them grows, and the others wait.
    pub const WEB_RELAYED_BYTES_MAX: usize = 16 << 20;
    /// Bytes of one command, its arguments included. More: an error result.
    pub const COMMAND_BYTES_MAX: usize = 96 << 10;
    /// Words of one command. More: an error result.
    pub const COMMAND_WORDS_MAX: usize = 1_024;
    /// Programs that the allowlist may come to, loaders and interpreters included. More: an error result.
    pub const PROGRAMS_MAX: usize = 512;
    /// Seconds that failed authentications, and refused sign-ins, are gathered for one audit entry: a flood leaves at most two entries
    /// in them.
    pub const AUTH_FAILURES_SECS: u64 = 60;
    /// Client addresses, and reasons, that one such entry lists; of the rest only the number.
    pub const AUTH_FAILURES_PEERS_MAX: usize = 16;
    /// Wrong API keys, or failed sign-ins at an identity provider, from one client address before it has to wait: a second, then twice as long after each further one.
    pub const AUTH_FREE_TRIES: u32 = 10;
    /// Seconds that a client waits at most after a wrong API key.
    pub const AUTH_WAIT_SECS_MAX: u64 = 60;
    /// Seconds after the last wait after which the wrong API keys of a client are forgotten.
    pub const AUTH_FORGOTTEN_SECS: u64 = 600;
    /// Client addresses whose wrong API keys are counted. More: those of further ones are counted together.
    pub const AUTH_SLOWED_MAX: usize = 10_000;
    /// Bytes that `api_key` needs where `api_listen` is not loopback. Fewer: the daemon does not start.
    pub const API_KEY_BYTES_MIN: usize = 32;
}
