//! Limits of sessions of people.

agentsvc_components::limits! {
    pub const ALL;
    /// Sessions of people who signed in. More: 429.
    pub const SIGN_INS_MAX: usize = 4_000;
    /// Bytes of the texts of all sessions of people. More: 429.
    pub const SIGN_INS_BYTES_MAX: usize = 4 << 20;
    /// Sessions of one user. One more ends the oldest.
    pub const USER_SIGN_INS_MAX: usize = 32;
    /// Bytes of one text that a provider says of a person, such as the name; a longer one is left out.
    pub const PROFILE_TEXT_BYTES_MAX: usize = 512;
    /// Sessions that one beat removes when they have expired; the others go with the next.
    pub const SIGN_INS_SWEPT_MAX: usize = 64;
}
