//! Kinds of audit log entries: peers.

agentsvc_components::audit_kinds! {
    /// A node with the shared secret connected for the first time, or showed its first key, which is now pinned.
    PEER_PINNED = "peer_pinned";
    /// A node was refused: it does not know the shared secret, has another key than before, or repeated a handshake.
    PEER_REFUSED = "peer_refused";
    /// A pinned node was forgotten.
    PEER_FORGOTTEN = "peer_forgotten";
    /// An agent of another node sent a message to an agent of this one.
    PEER_MESSAGE = "peer_message";
}
