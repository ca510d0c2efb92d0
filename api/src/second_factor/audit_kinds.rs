//! Kinds of audit log entries: second factor.

agentsvc_components::audit_kinds! {
    /// A new secret of the second factor was made; it does not count yet.
    TOTP_SET_UP = "totp_set_up";
    /// The new secret of the second factor was confirmed: it counts.
    TOTP_CONFIRMED = "totp_confirmed";
    /// The secret of the second factor was forgotten.
    TOTP_REVOKED = "totp_revoked";
    /// A wrong code of the second factor came.
    SECOND_FACTOR_FAILED = "second_factor_failed";
}
