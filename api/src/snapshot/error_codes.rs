//! Error codes of snapshots.

agentsvc_components::error_codes! {
    /// The limit for snapshots is reached.
    TOO_MANY_SNAPSHOTS = "too_many_snapshots", [409], "Delete snapshots.";
    /// The world of this step cannot be rebuilt. The message says which steps are available.
    STEP_NOT_KEPT = "step_not_kept", [409], "Choose an available step.";
    /// There is not enough memory to rebuild the world of an older step beside the one that runs.
    NOT_ENOUGH_MEMORY = "not_enough_memory", [503], "Stop the daemon and use `agentsvc replay --to N --out FILE`.";
    /// The snapshot's file is damaged.
    SNAPSHOT_DAMAGED = "snapshot_damaged", [409], "Use another snapshot.";
}
