//! Kinds of audit log entries: clusters.

agentsvc_components::audit_kinds! {
    /// A client asks to move the world to another node. Whether it was moved is in `GET /api/cluster`.
    CLUSTER_MOVE_REQUESTED = "cluster_move_requested";
    /// A client asks to drain a node.
    CLUSTER_DRAIN_REQUESTED = "cluster_drain_requested";
    /// A client had the nodes compared.
    CLUSTER_VERIFIED = "cluster_verified";
}
