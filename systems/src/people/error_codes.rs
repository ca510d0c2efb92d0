//! Error codes of users and keys.

agentsvc_components::error_codes! {
    /// The limit for the number of API keys, or for the bytes of their names, is reached.
    KEYS_FULL = "keys_full", [429], "Revoke keys.";
    /// The limit for the number of users, or for the bytes of their texts, is reached.
    USERS_FULL = "users_full", [429], "Delete users.";
    /// Another user or another key has this name.
    PERSON_NAME_TAKEN = "name_in_use", [409], "Choose another name.";
    /// The configuration names this user, so clients cannot change or delete them.
    USER_CONFIGURED = "user_configured", [409], "Change `[[users]]` of config.toml and reload the configuration.";
    /// Another user has this identity in a chat.
    BINDING_TAKEN = "binding_in_use", [409], "Remove the identity from the other user first.";
    /// No user is named for this account at an identity provider, and its mail address is of no allowed domain.
    SIGN_IN_NOT_ALLOWED = "sign_in_not_allowed", [403], "Ask an administrator to add you as a user, or to allow the domain.";
    /// The user of this mail address signed in with another account of the same provider before.
    IDENTITY_TAKEN = "identity_in_use", [403], "Sign in with the account that you used before, or ask an administrator.";
}
