//! Error codes of the HTTP server.

agentsvc_components::error_codes! {
    /// The page's origin is not allowed.
    ORIGIN = "origin", [403], "Add the origin to `cors_origin`.";
    /// The `Host` header is not an address of this daemon.
    HOST = "host", [403], "Use the daemon's IP address, or set an `api_key`.";
    /// Too many connections are open.
    CONNECTIONS = "connections", [503], "Close connections, or retry after the time in `Retry-After`.";
    /// The bodies of all requests together take too much memory.
    BODIES_FULL = "bodies_full", [503], "Retry after the time in `Retry-After`.";
    /// The answers that clients have not read yet take too much memory.
    ANSWERS_FULL = "answers_full", [503], "Read the answers of other requests, or retry after the time in `Retry-After`.";
    /// No node of the cluster answers for a moment; the request was not carried out.
    MOVING = "moving", [503], "Retry after the time in `Retry-After`.";
    /// The node of the cluster that was to answer broke off; the request may have been carried out.
    OUTCOME_UNKNOWN = "outcome_unknown", [502], "Look whether it was done before you repeat it.";
    /// A standby passes on too many requests at once.
    FORWARDS_FULL = "forwards_full", [503], "Retry after the time in `Retry-After`, or ask another node.";
    /// A standby does not know the key: it knows the `api_key` of its configuration only.
    STANDBY_KEY = "standby_key", [401], "Use the `api_key` of the configuration, or ask the owner.";
    /// The request failed because of a bug in the daemon.
    PANIC = "panic", [500], "Report the bug with the daemon's log.";
    /// Too many requests of this kind, or too many of its objects, exist at once.
    TOO_MANY = "too_many", [429], "Retry after the time in `Retry-After`.";
    /// The client address has used up its rate limit.
    RATE_LIMITED = "rate_limited", [429], "Retry after the time in `Retry-After`.";
    /// Wrong API keys came from the client address.
    AUTH_SLOWED = "auth_slowed", [429], "Check the API key; retry after the time in `Retry-After`.";
    /// This path accepts WebSocket connections only.
    UPGRADE_REQUIRED = "upgrade_required", [426], "Connect with a WebSocket client (version 13).";
    /// The vault cannot be read or written; nothing changed.
    VAULT_UNAVAILABLE = "vault_unavailable", [500], "Read the daemon's log; check the vault key and the disk.";
    /// The change could not be stored; nothing changed.
    NOT_STORED = "not_stored", [500], "Read the daemon's log; check the disk.";
}
