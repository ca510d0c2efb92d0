//! Kinds of audit log entries: sign-ins that were refused.

agentsvc_components::audit_kinds! {
    /// A sign-in was refused: the account is not allowed, its mail address is not verified, or the password is wrong.
    SIGN_IN_REFUSED = "sign_in_refused";
}
