//! Error codes of sessions of people.

agentsvc_components::error_codes! {
    /// The limit for the number of sessions of people, or for the bytes of their texts, is reached.
    SIGN_INS_FULL = "sign_ins_full", [429], "End sessions, or wait until some expire.";
}
