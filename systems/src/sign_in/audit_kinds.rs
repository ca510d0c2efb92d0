//! Kinds of audit log entries: sessions of people who signed in.

agentsvc_components::audit_kinds! {
    /// A person signed in: a session began.
    SIGNED_IN = "signed_in";
    /// A session of a person was ended, by themselves, by an administrator, with its user or for a newer one.
    SIGN_IN_ENDED = "sign_in_ended";
}
