//! Error codes of rehearsals.

agentsvc_components::error_codes! {
    /// A rehearsal is running.
    REHEARSAL_RUNNING = "rehearsal_running", [409], "Wait until it has ended, or delete it to cancel it.";
}
