//! Error codes of channels.

agentsvc_components::error_codes! {
    /// The adapter of the channel is not running.
    CHANNEL_NOT_RUNNING = "channel_not_running", [409], "Read `last_error` and the logs of the channel, correct its values, and reload.";
    /// The channel is defined in a file that the daemon does not write.
    CHANNEL_INCLUDED = "channel_included", [409], "Change the file that defines the channel, and reload.";
    /// The adapter of the channel does not show QR codes.
    CHANNEL_WITHOUT_QR = "channel_without_qr", [409], "Set the values of the channel; it needs no QR code.";
    /// The limit for the number of channels is reached.
    CHANNELS_FULL = "channels_full", [429], "Remove channels that you do not need.";
    /// The platform or the adapter refused a message.
    CHANNEL_REFUSED = "channel_refused", [502], "`error` says why; correct the values of the channel.";
    /// The adapter does not describe its values, or is not installed.
    CHANNEL_SCHEMA = "channel_schema", [503], "`error` says why; install the adapter, or set its variables in config.toml.";
    /// The adapter gave no answer in time.
    CHANNEL_TIMEOUT = "channel_timeout", [504], "Read the logs of the channel, and retry.";
}
