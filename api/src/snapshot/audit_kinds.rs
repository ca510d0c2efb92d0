//! Kinds of audit log entries: snapshot.

agentsvc_components::audit_kinds! {
    /// A snapshot of the world was taken.
    SNAPSHOT_TAKEN = "snapshot_taken";
    /// A snapshot was deleted, by a client or because of its age or number.
    SNAPSHOT_DELETED = "snapshot_deleted";
    /// The world of a snapshot took the place of the present one.
    SNAPSHOT_RESTORED = "snapshot_restored";
}
