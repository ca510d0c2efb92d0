//! Kinds of audit log entries: users and keys.

agentsvc_components::audit_kinds! {
    /// A key of the API was made.
    KEY_CREATED = "key_created";
    /// A key of the API was revoked, by itself or with its user.
    KEY_REVOKED = "key_revoked";
    /// A user was added.
    USER_CREATED = "user_created";
    /// A user was changed.
    USER_UPDATED = "user_updated";
    /// A user was removed, with their keys.
    USER_DELETED = "user_deleted";
}
