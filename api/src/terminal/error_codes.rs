//! Error codes of terminals.

agentsvc_components::error_codes! {
    /// Terminals are off.
    TERMINAL_OFF = "terminal_off", [403], "Set `[terminal] enabled = true` in the configuration.";
    /// The client is on another machine.
    TERMINAL_REMOTE = "terminal_remote", [403], "Connect from the machine of the daemon, or set `[terminal] allow_remote = true`.";
    /// As many terminals are open as there may be.
    TERMINALS_FULL = "terminals_full", [429], "Close a terminal, or set `[terminal] max_sessions` higher.";
    /// The shell cannot be started.
    TERMINAL_FAILED = "terminal_failed", [503], "Check `[terminal] shell` and the sandbox (`agentsvc doctor`).";
}
