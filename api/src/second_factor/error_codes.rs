//! Error codes of the second factor.

agentsvc_components::error_codes! {
    /// The code is missing, wrong or already used.
    TOTP_CODE = "totp_code", [400], "Send the current code of the authenticator.";
    /// No secret is confirmed.
    TOTP_NOT_ENROLLED = "totp_not_enrolled", [400], "Set up and confirm a secret first.";
    /// Too many wrong codes were sent.
    TOTP_LOCKED = "totp_locked", [429], "Retry after the time in `Retry-After`.";
}
