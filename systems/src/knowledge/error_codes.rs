//! Error codes of agents' knowledge.

agentsvc_components::error_codes! {
    /// Other requests keep changing the knowledge of the same agent.
    KNOWLEDGE_CHANGED = "knowledge_changed", [503], "Retry after the time in `Retry-After`.";
    /// The agent's knowledge has reached its limit of entities, relations or bytes.
    KNOWLEDGE_FULL = "knowledge_full", [409], "Delete relations or entities.";
}
