//! Kinds of audit log entries: world.

agentsvc_components::audit_kinds! {
    /// The daemon started.
    DAEMON_STARTED = "daemon_started";
    /// A client asked for the daemon's end.
    SHUTDOWN_REQUESTED = "shutdown_requested";
    /// The daemon stopped in order.
    DAEMON_STOPPED = "daemon_stopped";
}
