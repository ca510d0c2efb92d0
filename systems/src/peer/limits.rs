//! Limits of peers.

agentsvc_components::limits! {
    pub const ALL;
    /// Bytes of a frame before the handshake has ended. More: the connection is closed.
    pub const PEER_HELLO_BYTES_MAX: usize = 64 << 10;
    /// Bytes of a frame after it. More: the connection is closed.
    pub const PEER_FRAME_BYTES_MAX: usize = 16 << 20;
    /// Bytes of all frames that are being received, beside the first 64 KiB of each. More: they wait.
    pub const PEER_FRAMES_BYTES_MAX: usize = 64 << 20;
    /// Values in the JSON of a frame. More: the connection is closed.
    pub const PEER_FRAME_VALUES_MAX: usize = 64 << 10;
    /// Bytes of a message for an agent. More: error 413.
    pub const PEER_MESSAGE_BYTES_MAX: usize = 64 << 10;
    /// Bytes of the answer of an agent to a peer; the rest is cut.
    pub const PEER_ANSWER_BYTES_MAX: usize = 1 << 20;
    /// Milliseconds that a handshake may take. More: the connection is closed.
    pub const PEER_HANDSHAKE_MS: u64 = 10_000;
    /// Milliseconds that the rest of a frame may take once its first byte is there. More: the connection is closed.
    pub const PEER_FRAME_MS: u64 = 30_000;
    /// Milliseconds between two pings to a peer that this node dialled.
    pub const PEER_PING_MS: u64 = 30_000;
    /// Milliseconds without a frame after which a connection is closed.
    pub const PEER_IDLE_MS: u64 = 4 * PEER_PING_MS;
    /// Connections that have not ended their handshake. More: the oldest of the address that has most of them is closed.
    pub const PEER_HANDSHAKES_MAX: usize = 64;
    /// Connections of peers. More: the oldest on which no frame has come since its handshake is closed, else the oldest of the
    /// address that has most of them, if the new one's address has fewer, else error 429.
    pub const PEERS_MAX: usize = 50;
    /// Connections of one peer. More: the oldest on which no frame has come since its handshake is closed, or error 429.
    pub const PEER_CONNECTIONS_MAX: usize = 8;
    /// Messages to peers that are under way. More: they wait, as long as an answer may take.
    pub const PEER_MESSAGES_OUT_MAX: usize = 50;
    /// Peers that are remembered after they have left; the oldest go.
    pub const PEERS_REMEMBERED_MAX: usize = 256;
    /// Peers whose keys are pinned. More: a new peer is refused.
    pub const PEERS_TRUSTED_MAX: usize = 1_000;
    /// Peers that are pinned within an hour. More: error 429.
    pub const PEERS_PINNED_PER_HOUR_MAX: usize = 60;
    /// Nonces of handshakes that are remembered. More: error 429.
    pub const PEER_NONCES_MAX: usize = 100_000;
    /// Those of one peer. More: error 429.
    pub const PEER_NONCES_OF_ONE_MAX: usize = 10_000;
    /// Milliseconds that a nonce is remembered.
    pub const PEER_NONCE_MS: u64 = 5 * 60 * 1_000;
    /// Requests and notifications that are remembered on one connection, so that none counts twice. More: the connection is
    /// closed.
    pub const PEER_REQUESTS_MAX: usize = 10_000;
    /// Agents of a peer that are remembered, and own agents that a peer is told of. More: the first ones.
    pub const PEER_AGENTS_MAX: usize = 64;
    /// Pages of agents that are looked at for the agents that match a glob. More: agents of later pages are not told to peers.
    pub const PEER_AGENT_PAGES_MAX: usize = 16;
    /// Changed agents that are remembered until peers are told. More: all agents are looked at.
    pub const PEER_AGENT_CHANGES_MAX: usize = 1_000;
    /// Bytes of a name, an id or a nonce of a peer. More: error 400, or the rest is cut.
    pub const PEER_NAME_BYTES_MAX: usize = 128;
    /// Milliseconds before a peer is dialled again; they double from try to try.
    pub const PEER_DIAL_BACKOFF_MS: u64 = 1_000;
    /// Milliseconds between two tries to dial a peer.
    pub const PEER_DIAL_BACKOFF_MS_MAX: u64 = 5 * 60 * 1_000;
    /// Turns that messages of one peer have begun and that are not answered. More: error 429.
    pub const PEER_TURNS_MAX: usize = 4;
    /// Sessions of peers whose tokens are counted. More: the one that used tokens longest ago is forgotten.
    pub const PEER_SESSIONS_COUNTED_MAX: usize = 1_024;
    /// Sessions of one peer that its tokens are counted over: those of its last messages.
    pub const PEER_SESSIONS_OF_ONE_MAX: usize = 64;
    /// Audit entries of refused peers in a minute, and as many of nodes that do not know the secret; further ones are only
    /// counted.
    pub const PEER_REFUSALS_NOTED_MAX: u32 = 10;
    /// Bytes of the shared secret where peers are reached beyond this machine. Shorter: the network stays off.
    pub const PEER_SECRET_BYTES_MIN: usize = 32;
    /// Handshakes with a wrong secret in a minute, from all addresses. More: addresses without a peer that has connected since
    /// the start get error 429 until the minute is over. One address has to wait after ten, up to a minute.
    pub const PEER_WRONG_SECRETS_MAX: u32 = 300;
    /// Addresses of peers that have connected which are remembered for it; the oldest go.
    pub const PEER_ADDRESSES_KNOWN_MAX: usize = 256;
}
