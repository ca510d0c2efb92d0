//! Limits of sessions of people.

agentsvc_components::limits! {
    pub const ALL;
    /// Sessions of people who signed in. More: 429.
    pub const SIGN_INS_MAX: usize = 4_000;
    /// Bytes of the texts of all sessions of people. More: 429.
    pub const SIGN_INS_BYTES_MAX: usize = 4 << 20;
    /// Sessions of one user. One more ends the oldest.
    pub const USER_SIGN_INS_MAX: usize = 32;
    /// Completed sign-ins of which is remembered, until their 10 minutes are over, that they were completed. More: of the client
    /// address with the most, the oldest is forgotten; it stays refused, because its code was used at the identity provider.
    pub const SIGN_IN_STATES_MAX: usize = 65_536;
    /// The same, of one client address. More: its oldest is forgotten.
    pub const SIGN_IN_STATES_OF_CLIENT_MAX: usize = 4_096;
    /// Requests of people who sign in that ask identity providers at once. More: they wait 5 seconds, then 503 with `Retry-After`.
    pub const SIGN_INS_ASKING_MAX: usize = 64;
    /// The same, of one client address.
    pub const SIGN_INS_ASKING_OF_CLIENT_MAX: usize = 16;
    /// Bytes of one text that a provider says of a person, such as the name; a longer one is left out.
    pub const PROFILE_TEXT_BYTES_MAX: usize = 512;
    /// Sessions that one beat removes when they have expired; the others go with the next.
    pub const SIGN_INS_SWEPT_MAX: usize = 64;
}
