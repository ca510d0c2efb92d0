//! Error codes of clusters.

agentsvc_components::error_codes! {
    /// This daemon is a single one.
    CLUSTER_OFF = "cluster_off", [404], "Set `[cluster] servers` in the configuration.";
    /// The world is being moved, or another node has taken it over meanwhile.
    CLUSTER_BUSY = "cluster_busy", [409], "Look at `GET /api/cluster`, and repeat the request if it is still wanted.";
    /// The node cannot own the world now; `error` says why.
    CLUSTER_NOT_READY = "cluster_not_ready", [409], "Look at `GET /api/cluster/nodes`; wait until the node has caught up.";
    /// The servers that hold the journal do not answer.
    JOURNAL_UNAVAILABLE = "journal_unavailable", [503], "Retry after the time in `Retry-After`; check the NATS servers.";
    /// It was started, and its outcome is not known.
    CLUSTER_UNKNOWN = "cluster_unknown", [504], "Look at `GET /api/cluster` until it shows an owner.";
}
