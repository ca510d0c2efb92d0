//! Error codes of snapshots.

agentsvc_components::error_codes! {
    /// The limit for snapshots is reached.
    TOO_MANY_SNAPSHOTS = "too_many_snapshots", [409], "Delete snapshots.";
    /// The world of this step cannot be rebuilt. The message says which steps are available.
    STEP_NOT_KEPT = "step_not_kept", [409], "Choose an available step.";
    /// The snapshot's file is damaged.
    SNAPSHOT_DAMAGED = "snapshot_damaged", [409], "Use another snapshot.";
}
