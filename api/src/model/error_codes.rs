//! Error codes of the model catalog.

agentsvc_components::error_codes! {
    /// The limit of 1,000 custom models or aliases is reached.
    CATALOG_FULL = "catalog_full", [429], "Delete custom models or aliases.";
    /// The remote catalog cannot be fetched or verified.
    CATALOG_UPDATE_FAILED = "catalog_update_failed", [502], "Check `[catalog] url` and its key.";
    /// The catalog cannot be stored; nothing changed.
    CATALOG_UNSTORED = "catalog_unstored", [500], "Read the daemon's log; check the disk.";
}
