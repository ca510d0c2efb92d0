//! Kinds of audit log entries: media.

agentsvc_components::audit_kinds! {
    /// Media is requested from a provider.
    MEDIA_REQUESTED = "media_requested";
    /// A media task is removed with its files.
    MEDIA_DELETED = "media_deleted";
}
