//! Error codes of sign-in.

agentsvc_components::error_codes! {
    /// Sign-in is off.
    SIGN_IN_OFF = "sign_in_off", [503], "Set `[external_auth]` in config.toml, or use an API key.";
    /// The state of a callback is of no sign-in that waits for it in this browser.
    SIGN_IN_STATE = "sign_in_state", [400], "Start the sign-in again.";
    /// The person or the identity provider declined.
    SIGN_IN_DECLINED = "sign_in_declined", [401], "Start the sign-in again, and agree at the provider.";
    /// The mail address of the account is missing or not verified.
    SIGN_IN_UNVERIFIED = "sign_in_unverified", [403], "Verify the mail address at the provider, then sign in again.";
    /// The identity provider cannot be reached, or what it says cannot be relied upon.
    SIGN_IN_FAILED = "sign_in_failed", [502], "Try again, or sign in with an API key. The log of the daemon says more.";
    /// Many sign-ins are under way.
    SIGN_INS_BUSY = "sign_ins_busy", [503], "Retry after the time in `Retry-After`.";
    /// The name or the password is wrong.
    WRONG_PASSWORD = "wrong_password", [401], "Check the name and the password.";
}
