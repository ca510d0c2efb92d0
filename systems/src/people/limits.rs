//! Limits of users and keys.

agentsvc_components::limits! {
    pub const ALL;
    /// API keys beside that of the configuration. More: 429.
    pub const KEYS_MAX: usize = 1_000;
    /// Bytes of the names of all API keys. More: 429.
    pub const KEYS_BYTES_MAX: usize = KEYS_MAX * PERSON_NAME_BYTES_MAX;
    /// Keys whose end is noted at one beat; the rest follows at the next.
    pub const KEYS_EXPIRED_AT_ONCE_MAX: usize = 100;
    /// Users. More: 429.
    pub const USERS_MAX: usize = 1_000;
    /// Bytes of the texts of all users. More: 429.
    pub const USERS_BYTES_MAX: usize = 1 << 20;
    /// Bytes of the name of a user or of a key. Longer: 400.
    pub const PERSON_NAME_BYTES_MAX: usize = 128;
    /// Identities of a user in chats. More: 400.
    pub const USER_BINDINGS_MAX: usize = 32;
    /// Bytes of the channel, and of the id of the sender, of an identity in chats. Longer: 400.
    pub const USER_BINDING_BYTES_MAX: usize = 256;
    /// Accounts at identity providers of a user. More: 429.
    pub const USER_IDENTITIES_MAX: usize = 8;
    /// Bytes of the issuer, and of the subject, of an account at an identity provider. Longer: 400.
    pub const USER_IDENTITY_BYTES_MAX: usize = 256;
}
