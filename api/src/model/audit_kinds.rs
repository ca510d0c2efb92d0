//! Kinds of audit log entries: model.

agentsvc_components::audit_kinds! {
    /// A model was added to the catalog.
    MODEL_ADDED = "model_added";
    /// A model that a client had added was removed from the catalog.
    MODEL_REMOVED = "model_removed";
    /// An alias of a model was made.
    MODEL_ALIAS_ADDED = "model_alias_added";
    /// An alias of a model was removed.
    MODEL_ALIAS_REMOVED = "model_alias_removed";
    /// The catalog was replaced by a newer one.
    CATALOG_UPDATED = "catalog_updated";
}
