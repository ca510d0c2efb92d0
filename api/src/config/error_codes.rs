//! Error codes of the configuration.

agentsvc_components::error_codes! {
    /// The API cannot change this key.
    CONFIG_FORBIDDEN = "config_forbidden", [403], "Edit `config.toml` on the daemon's machine.";
    /// `config.toml` is not valid. `problems` lists line, column, key and message.
    CONFIG_INVALID = "config_invalid", [400, 409], "Correct the keys in `problems`.";
    /// A configuration with other values exists.
    CONFIG_EXISTS = "config_exists", [409], "Send `force`, or change the keys one by one.";
    /// The world did not accept the change. The message says whether the file has it.
    CONFIG_NOT_TAKEN = "config_not_taken", [503], "Retry after the time in `Retry-After`.";
    /// The configuration file cannot be read or written.
    CONFIG_UNAVAILABLE = "config_unavailable", [500], "Read the daemon's log.";
}
