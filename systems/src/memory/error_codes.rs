//! Error codes of agents' memory.

agentsvc_components::error_codes! {
    /// Other requests keep changing the same keys.
    MEMORY_CHANGED = "memory_changed", [503], "Retry after the time in `Retry-After`.";
    /// The agent's memory has reached its limit of entries or bytes.
    MEMORY_FULL = "memory_full", [409], "Delete entries.";
    /// An import with `on_conflict` `fail` found a key that exists.
    MEMORY_KEY_EXISTS = "memory_key_exists", [409], "Import with `overwrite` or `skip`, or remove the key.";
}
